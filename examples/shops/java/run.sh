# Compiles the connector and the shop, and starts the shop in Tomcat 10 (Debian: default-jdk-headless
# libtomcat10-embed-java libjakarta-annotation-api-java).
set -e
here=$(dirname "$0")
out=$(mktemp -d)
jars=/usr/share/java
path="$jars/tomcat10-embed-core.jar:$jars/jakarta-annotation-api.jar"
javac -cp "$path" -d "$out" "$here"/../../../connectors/java/frontrow/*.java "$here"/JavaShop.java
exec java -cp "$out:$path" JavaShop
