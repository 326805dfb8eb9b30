// Package frontrow is the connector for Go's net/http. docs/connector.md is its specification, and
// connectors/vectors.json its tests.
//
//	setup := frontrow.Setup{Room: "https://room.example/v1/events/aurora/room", Event: "aurora", Shop: "https://shop.example", OpenPaths: []string{"/static/"}}
//	http.ListenAndServe(":8000", frontrow.Protect(setup, shop))
//
// A request that gets through has the person and the visit in frontrow.Of(request).
package frontrow

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

const aheadS, passCookieS, bindCookieS, keptCookieS, maxAnswer = 60, 86400, 604800, 30, 4194304

var (
	plain    = regexp.MustCompile(`\A/[A-Za-z0-9._~!$&'()*+,=:@/-]*\z`)
	pageOf   = regexp.MustCompile(`\A(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(\?[!$-;=?-\[\]-~]*)?\z`)
	hidden   = regexp.MustCompile(`(?i)%(?:[01].|2f|5c|7f)`)
	tokens   = regexp.MustCompile(`([?&]frontrow=[A-Za-z0-9_-]*)+\z`)
	verifier = regexp.MustCompile(`\A[A-Za-z0-9_-]{43}\z`)
	base     = base64.RawURLEncoding.Strict()
	origin   = regexp.MustCompile(`\Ahttps?://[a-z0-9.-]+(:[0-9]+)?\z`)
)

// Setup says where the room and the shop are.
type Setup struct {
	Room      string   `json:"room"`
	Event     string   `json:"event"`
	Shop      string   `json:"shop"`
	OpenPaths []string `json:"open_paths"`
}

// Told is the room's connector document.
type Told struct {
	Events            []string
	Keys              []struct{ Kid, N, E string }
	After, Mark, Pass string
	Complete          bool
	Ended             []string
	NowS              int64 `json:"now_s"`
}

// Known is what the room said last.
type Known struct {
	keys   map[string]*rsa.PublicKey
	events map[string]bool
	ended  map[string]int64
	mark   string
}

// Decision is what to do with a request; Action is pass, open, strip, exchange, end, room, refuse or away.
type Decision struct {
	Action   string   `json:"action,omitempty"`
	Code     string   `json:"code,omitempty"`
	Location string   `json:"location,omitempty"`
	Cookies  []string `json:"cookies,omitempty"`
	Person   string   `json:"person,omitempty"`
	Visit    string   `json:"visit,omitempty"`
	Given    string   `json:"given,omitempty"`
	Renew    bool     `json:"renew,omitempty"`
	Token    string   `json:"token,omitempty"`
	Verifier string   `json:"verifier,omitempty"`
	Page     string   `json:"page,omitempty"`
}

func (s Setup) secure() bool { return strings.HasPrefix(s.Shop, "https:") }

func (s Setup) cookie(kind string) string {
	if s.secure() {
		return "__Host-frontrow-" + kind + "-" + s.Event
	}
	return "frontrow_" + kind + "_" + s.Event
}

func (s Setup) cookieLine(kind, value string, lifeS int) string {
	line := fmt.Sprintf("%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Lax", s.cookie(kind), value, lifeS)
	if s.secure() {
		line += "; Secure"
	}
	return line
}

// Decide is pure. target: path and query as the client sent them; headers: by lower-case name.
func Decide(s Setup, known Known, method, target string, headers map[string]string, nowS int64, fresh string) Decision {
	path, _, _ := strings.Cut(target, "?")
	if s.isOpen(path) {
		return Decision{Action: "open"}
	}
	page, token := tokens.ReplaceAllString(target, ""), ""
	if method == "GET" {
		token = target[max(len(page), strings.LastIndex(target, "=")+1):]
	}
	cookies := headers["cookie"]
	cookies = cookies[:min(len(cookies), 16384)]
	header := strings.Trim(headers["frontrow-pass"], " \t")
	given, code := header, "pass_required"
	if given == "" {
		given = readCookie(cookies, s.cookie("pass"))
	}
	var c claims
	if given != "" {
		c, code = s.readPass(known, given, nowS)
	}
	if path == "/.frontrow/end" && method == "POST" {
		if headers["origin"] != s.Shop && headers["sec-fetch-site"] != "same-origin" {
			return Decision{Action: "refuse", Code: "cross_site"}
		}
		if code != "" {
			given = ""
		}
		return Decision{Action: "end", Given: given, Cookies: []string{s.cookieLine("pass", "", 0), s.cookieLine("kept", "", 0)}}
	}
	if code == "" && len(page) < len(target) && method == "GET" {
		return Decision{Action: "strip", Location: wanted(page)}
	}
	if code == "" {
		due := header == "" && (*c.Exp-nowS)*3 < *c.Exp-*c.Iat && readCookie(cookies, s.cookie("kept")) == ""
		return Decision{Action: "pass", Person: *c.Sub, Visit: c.visit(), Given: given, Renew: due}
	}
	kept := readCookie(cookies, s.cookie("bind"))
	if !verifier.MatchString(kept) {
		kept = ""
	}
	if token != "" && kept != "" {
		return Decision{Action: "exchange", Code: code, Token: token, Verifier: kept, Page: wanted(page)}
	}
	if (method != "GET" && method != "HEAD") || !strings.Contains(headers["accept"], "text/html") {
		return Decision{Action: "refuse", Code: code}
	}
	return s.toRoom(page, kept, fresh, code)
}

func (s Setup) toRoom(page, kept, fresh, code string) Decision {
	done := Decision{Action: "room", Code: code}
	if kept == "" {
		kept, done.Cookies = fresh, []string{s.cookieLine("bind", fresh, bindCookieS)}
	}
	sum := sha256.Sum256([]byte(kept))
	back := strings.ReplaceAll(url.QueryEscape(s.Shop+wanted(page)), "+", "%20")
	done.Location = s.Room + "/?bind=" + base.EncodeToString(sum[:]) + "&return=" + back
	return done
}

// wanted is the page to lead to: never another site, whatever was in the address.
func wanted(page string) string {
	path, _, _ := strings.Cut(page, "?")
	if isPage(page) {
		return page
	}
	if isPage(path) {
		return path
	}
	return "/"
}

func hasDots(path string) bool {
	return strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../")
}

func (s Setup) isOpen(path string) bool {
	if !plain.MatchString(path) || strings.Contains(path, "//") || hasDots(path) {
		return false
	}
	for _, one := range s.OpenPaths {
		if path == one || (strings.HasSuffix(one, "/") && strings.HasPrefix(path, one)) {
			return true
		}
	}
	return false
}

func isPage(text string) bool {
	found := pageOf.FindStringSubmatch(text)
	return found != nil && len(text) <= 1024 && !strings.Contains(found[1], "//") && !hidden.MatchString(found[1]) && !hasDots(found[1])
}

func readCookie(header, name string) string {
	for _, part := range strings.Split(header, ";") {
		if key, value, _ := strings.Cut(strings.Trim(part, " \t"), "="); key == name && value != "" {
			return value
		}
	}
	return ""
}

type claims struct {
	Iss, Aud, Sub, Shop *string
	Exp, Iat            *int64
	Plc                 []int64
}

func (c claims) visit() string {
	return fmt.Sprintf("%s.%d.%d.%d", *c.Aud, c.Plc[0], c.Plc[1], c.Plc[2])
}

// readPass returns the claims of a pass, and why it is refused (nothing if it is good).
func (s Setup) readPass(known Known, text string, nowS int64) (claims, string) {
	c, code := verified(known, text)
	if code != "" {
		return c, code
	}
	if *c.Shop != s.Shop || (*c.Aud != s.Event && !known.events[*c.Aud]) {
		return c, "pass_foreign"
	}
	if nowS >= *c.Exp || *c.Iat > nowS+aheadS {
		return c, "pass_expired"
	}
	if _, over := known.ended[c.visit()]; over {
		return c, "pass_ended"
	}
	return c, ""
}

func verified(known Known, text string) (c claims, code string) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || len(text) > 4096 || strings.ContainsAny(text, "\r\n") { // the decoder skips line breaks
		return c, "pass_invalid"
	}
	head, e1 := base.DecodeString(parts[0])
	body, e2 := base.DecodeString(parts[1])
	signature, e3 := base.DecodeString(parts[2])
	var header map[string]string
	if e1 != nil || e2 != nil || e3 != nil || json.Unmarshal(head, &header) != nil || len(header) != 3 {
		return c, "pass_invalid"
	}
	kid, named := header["kid"]
	if header["alg"] != "RS256" || header["typ"] != "JWT" || !named || len(signature) == 0 {
		return c, "pass_invalid"
	}
	key := known.keys[kid]
	if key == nil {
		return c, "key_unknown"
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil || json.Unmarshal(body, &c) != nil {
		return c, "pass_invalid"
	}
	if c.Iss == nil || *c.Iss != "frontrow-room" || c.Aud == nil || c.Sub == nil || c.Shop == nil || c.Exp == nil || c.Iat == nil || len(c.Plc) != 3 {
		return c, "pass_invalid"
	}
	return c, ""
}

// Learn is what is known after another connector document of the room.
func Learn(known Known, told Told) Known {
	next := Known{map[string]*rsa.PublicKey{}, map[string]bool{}, map[string]int64{}, told.Mark}
	for _, key := range told.Keys {
		n, _ := base.DecodeString(key.N)
		e, _ := base.DecodeString(key.E)
		next.keys[key.Kid] = &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	}
	for _, event := range told.Events {
		next.events[event] = true
	}
	for visit, untilS := range known.ended {
		if known.mark != "" && told.After == known.mark && untilS > told.NowS {
			next.ended[visit] = untilS
		}
	}
	for _, entry := range told.Ended {
		at := strings.LastIndex(entry, ":")
		next.ended[entry[:max(at, 0)]], _ = strconv.ParseInt(entry[at+1:], 10, 64)
	}
	return next
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func min(a, b int) int { return a + b - max(a, b) }
