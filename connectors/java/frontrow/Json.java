package frontrow;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Reads JSON: Java has no reader of its own. Objects become maps, lists lists, whole numbers Long, others Double. */
final class Json {
    private static final int MAX_DEPTH = 32;
    private final String text;
    private int at, depth;

    private Json(String text) {
        this.text = text;
    }

    /** The value; throws IllegalArgumentException or IndexOutOfBoundsException if the text is anything else. */
    static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value();
        json.blanks();
        if (json.at != text.length()) throw json.wrong();
        return value;
    }

    private IllegalArgumentException wrong() {
        return new IllegalArgumentException("not JSON at " + at);
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    private boolean skip(char wanted) {
        blanks();
        if (at >= text.length() || text.charAt(at) != wanted) return false;
        at++;
        return true;
    }

    private void need(char wanted) {
        if (!skip(wanted)) throw wrong();
    }

    private Object value() {
        if (depth++ > MAX_DEPTH) throw wrong();
        blanks();
        Object value;
        char first = text.charAt(at);
        if (first == '{') value = object();
        else if (first == '[') value = list();
        else if (first == '"') value = string();
        else if (text.startsWith("true", at)) value = word("true", Boolean.TRUE);
        else if (text.startsWith("false", at)) value = word("false", Boolean.FALSE);
        else if (text.startsWith("null", at)) value = word("null", null);
        else value = number();
        depth--;
        return value;
    }

    private Object word(String word, Object value) {
        at += word.length();
        return value;
    }

    private Map<String, Object> object() {
        Map<String, Object> found = new LinkedHashMap<>();
        need('{');
        if (skip('}')) return found;
        do {
            blanks();
            String name = string();
            need(':');
            found.put(name, value());
        } while (skip(','));
        need('}');
        return found;
    }

    private List<Object> list() {
        List<Object> found = new ArrayList<>();
        need('[');
        if (skip(']')) return found;
        do found.add(value());
        while (skip(','));
        need(']');
        return found;
    }

    private String string() {
        need('"');
        StringBuilder found = new StringBuilder();
        for (char next = text.charAt(at++); next != '"'; next = text.charAt(at++)) {
            if (next < ' ') throw wrong();
            found.append(next == '\\' ? escaped() : next);
        }
        return found.toString();
    }

    private char escaped() {
        char next = text.charAt(at++);
        if (next == 'u') {
            at += 4;
            return (char) Integer.parseInt(text.substring(at - 4, at), 16);
        }
        int which = "\"\\/bfnrt".indexOf(next);
        if (which < 0) throw wrong();
        return "\"\\/\b\f\n\r\t".charAt(which);
    }

    private Object number() {
        int from = at;
        while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
        String found = text.substring(from, at);
        if (found.matches("-?(0|[1-9][0-9]{0,17})")) return Long.valueOf(found);
        if (!found.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) throw wrong();
        return Double.valueOf(found);
    }
}
