# The event is a list of strings. No character that means anything here is in them.
set -f
IFS='[],"'
is_program() {
  # Where there is none, it finds a file that is not executable.
  file=$(type -P "$1") && [ -x "$file" ]
}
for package in $EVENT_JSON; do
  case $package in
    '') ;;
    # A path is no name of a program.
    */*) echo "$package" ;;
    *) is_program "$package" || echo "$package" ;;
  esac
done
