package frontrow

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const away = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>One moment</title><p>The waiting room does not answer. This page tries again by itself.`

var client = &http.Client{Timeout: 2 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

type connector struct {
	setup   Setup
	shop    http.Handler
	lock    sync.Mutex // of known and asked
	known   Known
	asked   time.Time
	asking  sync.Mutex
	follows time.Duration
}

type visitKey struct{}

// Of is the decision that let this request through: Person and Visit.
func Of(r *http.Request) Decision {
	done, _ := r.Context().Value(visitKey{}).(Decision)
	return done
}

// Protect lets only visitors reach the shop. It panics if the setup is wrong.
func Protect(setup Setup, shop http.Handler) http.Handler {
	if !origin.MatchString(setup.Shop) || !strings.HasPrefix(setup.Room, "http") || strings.HasSuffix(setup.Room, "/") {
		panic("frontrow: Shop is an origin like https://shop.example.org, Room is like https://room.example.org/v1/events/aurora/room")
	}
	for _, path := range setup.OpenPaths {
		if !setup.isOpen(path) {
			panic(fmt.Sprintf("frontrow: open path %q must be written plainly, like /static/", path))
		}
	}
	return &connector{setup: setup, shop: shop, follows: 2 * time.Second}
}

func (c *connector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers := map[string]string{}
	for _, name := range []string{"Accept", "Cookie", "Frontrow-Pass", "Origin", "Sec-Fetch-Site"} {
		between := ", "
		if name == "Cookie" {
			between = "; "
		}
		headers[strings.ToLower(name)] = strings.Join(r.Header.Values(name), between)
	}
	done := c.handle(r.Method, r.RequestURI, headers)
	for _, line := range done.Cookies {
		w.Header().Add("Set-Cookie", line)
	}
	if done.Action == "pass" || done.Action == "open" {
		c.shop.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitKey{}, done)))
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	switch done.Action {
	case "strip", "room":
		w.Header().Set("Location", done.Location)
		w.WriteHeader(http.StatusSeeOther)
	case "end":
		w.WriteHeader(http.StatusNoContent)
	case "away":
		w.Header().Set("Retry-After", "2")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, away)
	default:
		c.refuse(w, done.Code)
	}
}

func (c *connector) refuse(w http.ResponseWriter, code string) {
	status := http.StatusUnauthorized
	if code == "cross_site" || code == "pass_foreign" {
		status = http.StatusForbidden
	}
	title := strings.ReplaceAll(strings.ToUpper(code[:1])+code[1:], "_", " ")
	problem := map[string]any{"type": "urn:frontrow:" + code, "title": title, "status": status, "code": code, "room": c.setup.Room + "/"}
	body, _ := json.Marshal(problem)
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	w.Write(body)
}

// handle is Decide, carried out: exchanged, renewed and ended.
func (c *connector) handle(method, target string, headers map[string]string) Decision {
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return Decision{Action: "away"}
	}
	fresh := base.EncodeToString(raw)
	known := c.follow(c.follows)
	done := Decide(c.setup, known, method, target, headers, time.Now().Unix(), fresh)
	if done.Code == "key_unknown" { // a new key, perhaps
		known = c.follow(time.Second / 2)
		done = Decide(c.setup, known, method, target, headers, time.Now().Unix(), fresh)
	}
	switch {
	case done.Action == "exchange":
		status, told := c.call("/exchange", strings.NewReader(url.Values{"token": {done.Token}, "verifier": {done.Verifier}}.Encode()), "")
		if status == 200 {
			c.lock.Lock()
			c.asked = time.Time{} // its key may be new
			c.lock.Unlock()
			return Decision{Action: "strip", Location: done.Page, Cookies: []string{c.setup.cookieLine("pass", told.Pass, passCookieS)}}
		}
		if status == 0 || status >= 500 {
			return Decision{Action: "away"}
		}
		return c.setup.toRoom(done.Page, done.Verifier, "", "pass_required")
	case done.Action == "end" && done.Given != "":
		c.call("/give-back", strings.NewReader(""), done.Given)
	case done.Code == "key_unknown" && len(known.keys) == 0:
		return Decision{Action: "away"}
	case done.Renew:
		done.Cookies = []string{c.setup.cookieLine("kept", "1", keptCookieS)}
		if status, told := c.call("/renew", strings.NewReader(""), done.Given); status == 200 {
			done.Cookies = []string{c.setup.cookieLine("pass", told.Pass, passCookieS)}
		}
	}
	return done
}

// follow asks the room for its keys and for the visits that ended, unless that was done just now. One caller asks, the
// others go on; only the first keys are waited for.
func (c *connector) follow(maxAge time.Duration) Known {
	known, asked := c.read()
	if len(known.keys) == 0 {
		maxAge = time.Second / 2
		c.asking.Lock()
	} else if time.Since(asked) < maxAge || !c.asking.TryLock() {
		return known
	}
	defer c.asking.Unlock()
	if known, asked = c.read(); time.Since(asked) < maxAge {
		return known
	}
	status, told := c.call("/connector?after="+url.QueryEscape(known.mark), nil, "")
	c.lock.Lock()
	defer c.lock.Unlock()
	c.asked = time.Now()
	if status == 200 {
		c.known = Learn(known, told)
		if !told.Complete {
			c.asked = time.Time{}
		}
	}
	return c.known
}

func (c *connector) read() (Known, time.Time) {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.known, c.asked
}

// call returns status and JSON of a call to the room; status 0 if it does not answer.
func (c *connector) call(endpoint string, body io.Reader, given string) (status int, told Told) {
	method := "GET"
	if body != nil {
		method = "POST"
	}
	request, err := http.NewRequest(method, c.setup.Room+endpoint, body)
	if err == nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if given != "" {
			request.Header.Set("Frontrow-Pass", given)
		}
		var answer *http.Response
		if answer, err = client.Do(request); err == nil {
			defer answer.Body.Close()
			status, err = answer.StatusCode, json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&told)
		}
	}
	if err != nil {
		log.Printf("frontrow: the waiting room at %s does not answer: %v", c.setup.Room, err)
		return 0, Told{}
	}
	return status, told
}
