# Sourced by ./quickstart and ./test. Runs a command with its output in $log, shows one line of
# progress on a terminal, and prints the end of the log on failure.

logged() {
  local what=$1 status=0
  shift
  echo "== $what: $*" >>"$log"
  if [ -t 1 ]; then
    printf '%s ...' "$what"
    "$@" 2>&1 | tee -a "$log" | progress "$what" || status=$?
    printf '\r\033[K'
  else
    "$@" >>"$log" 2>&1 || status=$?
  fi
  if [ "$status" -ne 0 ]; then
    echo "$what: failed; the end of $log:" >&2
    tail -n 25 "$log" >&2
    return "$status"
  fi
  echo "$what: done"
}

# Prints Ninja's "[12/40]" after the name of the step.
progress() {
  local line
  while IFS= read -r line; do
    case $line in
      \[*/*\]*) printf '\r%s %s\033[K' "$1" "${line%%]*}]" ;;
    esac
  done
}
