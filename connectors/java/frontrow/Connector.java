package frontrow;

import java.math.BigInteger;
import java.net.URLEncoder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.Signature;
import java.security.spec.RSAPublicKeySpec;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What the connector decides, without dependencies, for Java 11 and newer. docs/connector.md is its specification, and
 * connectors/vectors.json its tests. {@link Room} talks to the room; {@link Filter} is the servlet filter.
 */
public final class Connector {
    static final int AHEAD_S = 60, PASS_COOKIE_S = 86400, BIND_COOKIE_S = 604800, KEPT_COOKIE_S = 30;
    static final Pattern PLAIN = Pattern.compile("/[A-Za-z0-9._~!$&'()*+,=:@/-]*");
    static final Pattern PAGE = Pattern.compile("(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(\\?[!$-;=?-\\[\\]-~]*)?");
    static final Pattern HIDDEN = Pattern.compile("%(?:[01].|2f|5c|7f)", Pattern.CASE_INSENSITIVE);
    static final Pattern TOKENS = Pattern.compile("([?&]frontrow=[A-Za-z0-9_-]*)+\\z");
    static final Pattern VERIFIER = Pattern.compile("[A-Za-z0-9_-]{43}");
    static final Pattern BASE64 = Pattern.compile("[A-Za-z0-9_-]+");
    static final Pattern ORIGIN = Pattern.compile("https?://[a-z0-9.-]+(:[0-9]+)?");

    private Connector() {}

    /** Where the room and the shop are. */
    public static final class Setup {
        public final String room, event, shop;
        public final List<String> openPaths;

        public Setup(String room, String event, String shop, List<String> openPaths) {
            this.room = room;
            this.event = event;
            this.shop = shop;
            this.openPaths = openPaths;
            if (!ORIGIN.matcher(shop).matches()) throw new IllegalArgumentException("shop is an origin like https://shop.example.org, not " + shop);
            if (!room.startsWith("http") || room.endsWith("/")) throw new IllegalArgumentException("room is like https://room.example.org/v1/events/aurora/room, not " + room);
            for (String path : openPaths) if (!isOpen(this, path)) throw new IllegalArgumentException("open path " + path + " must be written plainly, like /static/");
        }

        boolean secure() {
            return shop.startsWith("https:");
        }

        String cookie(String kind) {
            return secure() ? "__Host-frontrow-" + kind + "-" + event : "frontrow_" + kind + "_" + event;
        }

        String cookieLine(String kind, String value, int lifeS) {
            return cookie(kind) + "=" + value + "; Path=/; Max-Age=" + lifeS + "; HttpOnly; SameSite=Lax" + (secure() ? "; Secure" : "");
        }
    }

    /** What the room's connector document said last. */
    public static final class Known {
        final Map<String, PublicKey> keys = new HashMap<>();
        final Set<String> events = new HashSet<>();
        final Map<String, Long> ended = new HashMap<>();
        String mark = "";
    }

    /** What to do with a request. The action is pass, open, strip, exchange, end, room, refuse or away. */
    public static final class Decision {
        public final String action;
        public String code = "", location = "", person = "", visit = "", given = "", token = "", verifier = "", page = "";
        public boolean renew;
        public List<String> cookies = List.of();

        Decision(String action) {
            this.action = action;
        }

        Decision code(String code) {
            this.code = code;
            return this;
        }
    }

    /** Pure. `target`: path and query as the client sent them; `headers`: by lower-case name. */
    public static Decision decide(Setup setup, Known known, String method, String target, Map<String, String> headers, long nowS, String fresh) {
        String path = target.split("\\?", 2)[0];
        if (isOpen(setup, path)) return new Decision("open");
        String page = TOKENS.matcher(target).replaceFirst("");
        String token = method.equals("GET") && page.length() < target.length() ? target.substring(target.lastIndexOf('=') + 1) : "";
        String cookies = headers.getOrDefault("cookie", "");
        cookies = cookies.substring(0, Math.min(cookies.length(), 16384));
        String header = trim(headers.getOrDefault("frontrow-pass", ""));
        String given = header.isEmpty() ? readCookie(cookies, setup.cookie("pass")) : header;
        Claims claims = new Claims();
        String code = given.isEmpty() ? "pass_required" : readPass(setup, known, given, nowS, claims);
        if (path.equals("/.frontrow/end") && method.equals("POST")) {
            if (!setup.shop.equals(headers.get("origin")) && !"same-origin".equals(headers.get("sec-fetch-site"))) return new Decision("refuse").code("cross_site");
            Decision end = new Decision("end");
            end.given = code.isEmpty() ? given : "";
            end.cookies = List.of(setup.cookieLine("pass", "", 0), setup.cookieLine("kept", "", 0));
            return end;
        }
        if (code.isEmpty() && page.length() < target.length() && method.equals("GET")) {
            Decision strip = new Decision("strip");
            strip.location = wanted(page);
            return strip;
        }
        if (code.isEmpty()) {
            Decision pass = new Decision("pass");
            pass.person = claims.sub;
            pass.visit = claims.visit();
            pass.given = given;
            pass.renew = header.isEmpty() && (claims.exp - nowS) * 3 < claims.exp - claims.iat && readCookie(cookies, setup.cookie("kept")).isEmpty();
            return pass;
        }
        String verifier = readCookie(cookies, setup.cookie("bind"));
        if (!VERIFIER.matcher(verifier).matches()) verifier = "";
        if (!token.isEmpty() && !verifier.isEmpty()) {
            Decision exchange = new Decision("exchange").code(code);
            exchange.token = token;
            exchange.verifier = verifier;
            exchange.page = wanted(page);
            return exchange;
        }
        if (!(method.equals("GET") || method.equals("HEAD")) || !headers.getOrDefault("accept", "").contains("text/html")) return new Decision("refuse").code(code);
        return toRoom(setup, page, verifier, fresh, code);
    }

    /** To the room, and back to `page` afterwards. A browser without a verifier gets `fresh`. */
    static Decision toRoom(Setup setup, String page, String verifier, String fresh, String code) {
        Decision room = new Decision("room").code(code);
        if (verifier.isEmpty()) room.cookies = List.of(setup.cookieLine("bind", fresh, BIND_COOKIE_S));
        String back = URLEncoder.encode(setup.shop + wanted(page), StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
        room.location = setup.room + "/?bind=" + base64(sha256(verifier.isEmpty() ? fresh : verifier)) + "&return=" + back;
        return room;
    }

    /** The page to lead to: never another site, whatever was in the address. */
    static String wanted(String page) {
        String path = page.split("\\?", 2)[0];
        return isPage(page) ? page : isPage(path) ? path : "/";
    }

    static boolean hasDots(String path) {
        return (path + "/").contains("/./") || (path + "/").contains("/../");
    }

    static boolean isOpen(Setup setup, String path) {
        if (!PLAIN.matcher(path).matches() || path.contains("//") || hasDots(path)) return false;
        return setup.openPaths.stream().anyMatch(one -> path.equals(one) || (one.endsWith("/") && path.startsWith(one)));
    }

    static boolean isPage(String text) {
        Matcher found = PAGE.matcher(text);
        return text.length() <= 1024 && found.matches() && !found.group(1).contains("//") && !HIDDEN.matcher(found.group(1)).find() && !hasDots(found.group(1));
    }

    static String trim(String text) {
        return text.replaceAll("\\A[ \\t]+|[ \\t]+\\z", "");
    }

    static String readCookie(String header, String name) {
        for (String part : header.split(";")) {
            String[] pair = trim(part).split("=", 2);
            if (pair.length == 2 && pair[0].equals(name) && !pair[1].isEmpty()) return pair[1];
        }
        return "";
    }

    static final class Claims {
        String aud, sub, shop;
        long exp, iat;
        long[] plc;

        String visit() {
            return aud + "." + plc[0] + "." + plc[1] + "." + plc[2];
        }
    }

    /** Reads the claims of a pass, and says why it is refused (nothing if it is good). */
    static String readPass(Setup setup, Known known, String text, long nowS, Claims claims) {
        String code;
        try {
            code = verify(known, text, claims);
        } catch (GeneralSecurityException | CharacterCodingException | RuntimeException error) {
            code = "pass_invalid";
        }
        if (!code.isEmpty()) return code;
        if (!claims.shop.equals(setup.shop) || !(claims.aud.equals(setup.event) || known.events.contains(claims.aud))) return "pass_foreign";
        if (nowS >= claims.exp || claims.iat > nowS + AHEAD_S) return "pass_expired";
        return known.ended.containsKey(claims.visit()) ? "pass_ended" : "";
    }

    private static String verify(Known known, String text, Claims claims) throws GeneralSecurityException, CharacterCodingException {
        String[] parts = text.length() <= 4096 ? text.split("\\.", -1) : new String[0];
        if (parts.length != 3) return "pass_invalid";
        byte[] signature = unbase64(parts[2]);
        Map<?, ?> header = (Map<?, ?>) Json.read(utf8(unbase64(parts[0])));
        if (!header.keySet().equals(Set.of("alg", "kid", "typ")) || !"RS256".equals(header.get("alg")) || !"JWT".equals(header.get("typ"))) return "pass_invalid";
        PublicKey key = known.keys.get(header.get("kid"));
        if (key == null) return "key_unknown";
        Signature verifier = Signature.getInstance("SHA256withRSA");
        verifier.initVerify(key);
        verifier.update((parts[0] + "." + parts[1]).getBytes(StandardCharsets.US_ASCII));
        if (!verifier.verify(signature)) return "pass_invalid";
        Map<?, ?> told = (Map<?, ?>) Json.read(utf8(unbase64(parts[1])));
        claims.aud = (String) told.get("aud");
        claims.sub = (String) told.get("sub");
        claims.shop = (String) told.get("shop");
        claims.exp = (Long) told.get("exp");
        claims.iat = (Long) told.get("iat");
        claims.plc = ((List<?>) told.get("plc")).stream().mapToLong(one -> (Long) one).toArray();
        boolean good = "frontrow-room".equals(told.get("iss")) && claims.aud != null && claims.sub != null && claims.shop != null;
        return good && claims.plc.length == 3 ? "" : "pass_invalid";
    }

    /** What is known after another connector document of the room. */
    public static Known learn(Known before, Map<?, ?> told) throws GeneralSecurityException {
        Known known = new Known();
        known.mark = (String) told.get("mark");
        for (Object one : (List<?>) told.get("keys")) {
            Map<?, ?> key = (Map<?, ?>) one;
            BigInteger n = new BigInteger(1, unbase64((String) key.get("n"))), e = new BigInteger(1, unbase64((String) key.get("e")));
            known.keys.put((String) key.get("kid"), KeyFactory.getInstance("RSA").generatePublic(new RSAPublicKeySpec(n, e)));
        }
        for (Object event : (List<?>) told.get("events")) known.events.add((String) event);
        if (!before.mark.isEmpty() && before.mark.equals(told.get("after"))) known.ended.putAll(before.ended);
        known.ended.values().removeIf(untilS -> untilS <= (Long) told.get("now_s"));
        for (Object entry : (List<?>) told.get("ended")) {
            int at = ((String) entry).lastIndexOf(':');
            known.ended.put(((String) entry).substring(0, at), Long.parseLong(((String) entry).substring(at + 1)));
        }
        return known;
    }

    static String base64(byte[] raw) {
        return Base64.getUrlEncoder().withoutPadding().encodeToString(raw);
    }

    /** The bytes of base64url without padding, in its only spelling. */
    static byte[] unbase64(String text) {
        if (!BASE64.matcher(text).matches()) throw new IllegalArgumentException("not base64url");
        byte[] raw = Base64.getUrlDecoder().decode(text);
        if (!base64(raw).equals(text)) throw new IllegalArgumentException("not base64url");
        return raw;
    }

    static String utf8(byte[] raw) throws CharacterCodingException {
        return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(raw)).toString();
    }

    static byte[] sha256(String text) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.US_ASCII));
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}
