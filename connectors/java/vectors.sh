# Compiles the connector without its servlet filter, which needs a container, and runs connectors/vectors.json.
set -e
here=$(dirname "$0")
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
javac -Xlint:all -Werror -d "$out" "$here"/frontrow/Connector.java "$here"/frontrow/Json.java "$here"/frontrow/Room.java "$here"/frontrow/Vectors.java
java -cp "$out" frontrow.Vectors "$here"/../vectors.json
