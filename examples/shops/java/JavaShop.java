import frontrow.FrontrowFilter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.util.Map;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;
import org.apache.tomcat.util.descriptor.web.FilterDef;
import org.apache.tomcat.util.descriptor.web.FilterMap;

/**
 * A shop on another domain than its waiting room, as a Java servlet in Tomcat 10 (run.sh says which packages). Room and shop, each in a
 * terminal:
 *
 *   frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
 *   PORT=8000 sh examples/shops/java/run.sh
 */
public final class JavaShop {
    static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static final class Shop extends HttpServlet {
        private static final long serialVersionUID = 1;

        @Override
        protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
            String person = (String) request.getAttribute("frontrow.person");
            response.setContentType("text/html; charset=utf-8");
            String safe = person.replace("&", "&amp;").replace("<", "&lt;");
            response.getWriter().write(person.isEmpty() ? "ok" : "<h1>Welcome! Choose your seats.</h1><p>You are " + safe + ".</p>");
        }
    }

    public static void main(String[] arguments) throws Exception {
        String port = setting("PORT", "8000");
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("shop").toString());
        tomcat.setPort(Integer.parseInt(port));
        tomcat.setHostname("127.0.0.1");
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", null);
        FilterDef filter = new FilterDef();
        filter.setFilterName("frontrow");
        filter.setFilterClass(FrontrowFilter.class.getName());
        context.setIgnoreAnnotations(true);
        context.setParentClassLoader(JavaShop.class.getClassLoader());
        Map<String, String> parameters = Map.of(
            "room", setting("ROOM_URL", "http://127.0.0.1:8008") + "/v1/events/aurora/room",
            "event", "aurora", "shop", setting("SHOP_URL", "http://127.0.0.1:" + port), "open", "/health");
        parameters.forEach(filter::addInitParameter);
        context.addFilterDef(filter);
        FilterMap everywhere = new FilterMap();
        everywhere.setFilterName("frontrow");
        everywhere.addURLPattern("/*");
        context.addFilterMap(everywhere);
        Tomcat.addServlet(context, "shop", new Shop());
        context.addServletMappingDecoded("/*", "shop");
        tomcat.start();
        tomcat.getServer().await();
    }
}
