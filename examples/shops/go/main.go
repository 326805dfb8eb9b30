// A shop on another domain than its waiting room, in Go. Room and shop, each in a terminal:
//
//	frontrow room serve --event aurora --shop-origin http://127.0.0.1:8000
//	PORT=8000 go run -C examples/shops/go .
package main

import (
	"fmt"
	"html"
	"log"
	"net/http"
	"os"

	frontrow "frontrow.example/connector"
)

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func shop(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if person := frontrow.Of(r).Person; person != "" {
		fmt.Fprintf(w, "<h1>Welcome! Choose your seats.</h1><p>You are %s.</p>", html.EscapeString(person))
		return
	}
	fmt.Fprint(w, "ok")
}

func main() {
	port := setting("PORT", "8000")
	setup := frontrow.Setup{
		Room:      setting("ROOM_URL", "http://127.0.0.1:8008") + "/v1/events/aurora/room",
		Event:     "aurora",
		Shop:      setting("SHOP_URL", "http://127.0.0.1:"+port),
		OpenPaths: []string{"/health"},
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, frontrow.Protect(setup, http.HandlerFunc(shop))))
}
