package frontrow;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Runs connectors/vectors.json in this runtime, and prints what differs: `java -cp … frontrow.Vectors vectors.json`. */
public final class Vectors {
    private Vectors() {}

    @SuppressWarnings("unchecked")
    public static void main(String[] arguments) throws Exception {
        Map<String, Object> file = (Map<String, Object>) Json.read(Files.readString(Path.of(arguments[0])));
        Map<String, Connector.Setup> setups = new HashMap<>();
        for (Map.Entry<String, Object> one : ((Map<String, Object>) file.get("setups")).entrySet()) {
            Map<String, Object> setup = (Map<String, Object>) one.getValue();
            setups.put(one.getKey(), new Connector.Setup((String) setup.get("room"), (String) setup.get("event"), (String) setup.get("shop"), (List<String>) setup.get("open_paths")));
        }
        Map<String, Connector.Known> rooms = new HashMap<>();
        for (Map.Entry<String, Object> one : ((Map<String, Object>) file.get("rooms")).entrySet()) rooms.put(one.getKey(), Connector.learn(new Connector.Known(), (Map<?, ?>) one.getValue()));
        List<Object> vectors = (List<Object>) file.get("vectors");
        int wrong = 0;
        for (Object each : vectors) {
            Map<String, Object> v = (Map<String, Object>) each;
            Connector.Decision done = Connector.decide(setups.get(v.get("setup")), rooms.get(v.get("room")), (String) v.get("method"), (String) v.get("target"), (Map<String, String>) v.get("headers"), (Long) v.get("now_s"), (String) file.get("fresh"));
            Map<String, Object> found = fieldsOf(done), wanted = new TreeMap<>((Map<String, Object>) v.get("expect"));
            if (found.equals(wanted)) continue;
            wrong++;
            System.out.println(v.get("name") + "\n  found  " + found + "\n  wanted " + wanted);
        }
        System.out.println(vectors.size() - wrong + " of " + vectors.size() + " vectors");
        System.exit(wrong == 0 ? 0 : 1);
    }

    private static Map<String, Object> fieldsOf(Connector.Decision done) {
        Map<String, Object> found = new TreeMap<>(Map.of("action", done.action, "code", done.code, "location", done.location, "person", done.person, "visit", done.visit));
        found.putAll(Map.of("given", done.given, "token", done.token, "verifier", done.verifier, "page", done.page));
        found.values().removeIf(""::equals);
        if (done.renew) found.put("renew", true);
        if (!done.cookies.isEmpty()) found.put("cookies", new ArrayList<Object>(done.cookies));
        return found;
    }
}
