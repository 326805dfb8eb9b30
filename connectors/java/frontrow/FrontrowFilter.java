package frontrow;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The connector as a servlet filter (Jakarta; for older containers write javax for jakarta), mapped to /* before all others.
 * Parameters: room, event, shop, open (paths with commas between them). A request that gets through has the attributes
 * frontrow.person and frontrow.visit.
 */
public final class FrontrowFilter implements Filter {
    private Connector.Setup setup;
    private Room room;

    @Override
    public void init(FilterConfig config) {
        String open = config.getInitParameter("open");
        List<String> paths = open == null || open.isEmpty() ? List.of() : Arrays.asList(open.split(","));
        setup = new Connector.Setup(config.getInitParameter("room"), config.getInitParameter("event"), config.getInitParameter("shop"), paths);
        room = new Room(setup);
    }

    @Override
    public void doFilter(ServletRequest given, ServletResponse answer, FilterChain shop) throws IOException, ServletException {
        HttpServletRequest request = (HttpServletRequest) given;
        HttpServletResponse response = (HttpServletResponse) answer;
        Map<String, String> headers = new HashMap<>();
        for (String name : List.of("accept", "cookie", "frontrow-pass", "origin", "sec-fetch-site"))
            headers.put(name, String.join(name.equals("cookie") ? "; " : ", ", Collections.list(request.getHeaders(name))));
        String query = request.getQueryString(), target = request.getRequestURI() + (query == null ? "" : "?" + query);
        Connector.Decision done = room.handle(request.getMethod(), target, headers);
        for (String line : done.cookies) response.addHeader("Set-Cookie", line);
        if (done.action.equals("pass") || done.action.equals("open")) {
            request.setAttribute("frontrow.person", done.person);
            request.setAttribute("frontrow.visit", done.visit);
            shop.doFilter(request, response);
            return;
        }
        response.setHeader("Cache-Control", "no-store");
        response.setHeader("Referrer-Policy", "no-referrer");
        if (!done.location.isEmpty()) {
            response.setStatus(303);
            response.setHeader("Location", done.location);
        } else if (done.action.equals("end")) {
            response.setStatus(204);
        } else if (done.action.equals("away")) {
            response.setStatus(503);
            response.setHeader("Retry-After", "2");
            response.setContentType("text/html");
            response.getWriter().write(Room.AWAY);
        } else {
            int status = done.code.equals("cross_site") || done.code.equals("pass_foreign") ? 403 : 401;
            response.setStatus(status);
            response.setContentType("application/problem+json");
            response.getWriter().write(room.problem(done.code, status));
        }
    }
}
