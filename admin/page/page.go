package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"hooklock/admin/client"
)

//go:embed static
var static embed.FS

// Prefix is the path of everything but the first file, which is at "/".
const Prefix = "/page/"

// policy lets the page load files of its own origin only: no inline script or style, no frame, no
// form to another address.
const policy = "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// Options configure a Page.
type Options struct {
	// API serves the requests of the page and checks their tokens.
	API http.Handler
	// Life ends open streams; a server that shuts down would wait for them.
	Life context.Context
	// Every is the interval at which a live screen is read again; 0 = 2 s.
	Every time.Duration
}

// Page is the handler of "/" and of everything below Prefix. Its caller checks the Host header and
// the origin of a request.
type Page struct {
	o         Options
	templates *template.Template
	assets    map[string]asset
	screens   []screen

	mu      sync.Mutex
	open    int            // live screens
	streams map[string]int // of them, by Authorization
}

// asset is a static file.
type asset struct {
	media, tag string
	text       []byte
}

// screen is one screen of the page.
type screen struct {
	Name  string // in the URL
	Title string
	Key   string // on the keyboard
	// Hidden screens are not in the navigation; links lead to them.
	Hidden bool
	make   func(*visit) ([]section, error)
}

// allScreens returns all screens, in the order of the navigation.
func allScreens() []screen {
	return []screen{
		{"now", "Overview", "1", false, nowScreen},
		{"find", "Events", "2", false, findScreen},
		{"needs", "Needs attention", "3", false, needsScreen},
		{"routes", "Routes", "4", false, routesScreen},
		{"audit", "Audit", "5", false, auditScreen},
		{"jobs", "Jobs", "6", false, jobsScreen},
		{"suggestions", "Suggestions", "7", false, suggestionsScreen},
		{"story", "Event", "", true, eventScreen},
		{"signatures", "Bad signatures", "", true, signaturesScreen},
		{"latency", "Route over time", "", true, latencyScreen},
	}
}

// New returns a Page. It starts no goroutine.
func New(o Options) *Page {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	p := &Page{o: o, screens: allScreens(), assets: map[string]asset{}, streams: map[string]int{}}
	p.templates = template.Must(template.New("page").Funcs(templateFunctions()).ParseFS(static, "static/*.html"))
	for name, media := range map[string]string{"page.css": "text/css; charset=utf-8",
		"page.js": "text/javascript; charset=utf-8", "lines.js": "text/javascript; charset=utf-8",
		"icon.svg": "image/svg+xml"} {
		text, err := static.ReadFile("static/" + name)
		if err != nil {
			panic(err) // it is embedded
		}
		sum := sha256.Sum256(text)
		p.assets[name] = asset{media, `"` + hex.EncodeToString(sum[:8]) + `"`, text}
	}
	return p
}

// Has reports whether a path belongs to the page.
func Has(path string) bool { return path == "/" || strings.HasPrefix(path, Prefix) }

// ServeHTTP implements http.Handler.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		p.refuseWith(w, http.StatusMethodNotAllowed, "method_not_allowed",
			"the page takes GET and HEAD: send changes to /v1")
		return
	}
	name := strings.TrimPrefix(r.URL.Path, Prefix)
	switch a, is := p.assets[name]; {
	case r.URL.Path == "/":
		p.renderTemplate(w, http.StatusOK, "shell", p.screens)
	case is:
		h.Set("Content-Type", a.media)
		h.Set("Cache-Control", "no-cache") // ask each time whether it is the same
		h.Set("ETag", a.tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.text))
	case name == "live":
		p.serveLive(w, r)
	case name == "ask":
		p.showQuestion(w, r)
	case name == "export":
		p.serveExport(w, r)
	case name == "bar":
		p.serveBar(w, r)
	default:
		p.showScreen(w, r, name)
	}
}

// showScreen responds with a screen.
func (p *Page) showScreen(w http.ResponseWriter, r *http.Request, name string) {
	for i := range p.screens {
		s := &p.screens[i]
		if s.Name != name {
			continue
		}
		v, err := p.newVisit(r)
		if err != nil {
			p.showProblem(w, err)
			return
		}
		sections, err := s.make(v)
		if err != nil {
			p.showProblem(w, err)
			return
		}
		p.renderTemplate(w, http.StatusOK, "screen", shown{s, v.standingLines(), sections, time.Now()})
		return
	}
	p.refuseWith(w, http.StatusNotFound, "not_found", "no such screen")
}

// shown is the data of the template of a screen.
type shown struct {
	*screen
	Lines    []line // of the bar, so that no screen is seen without it
	Sections []section
	At       time.Time
}

// renderTemplate writes a template. It writes nothing if the template fails.
func (p *Page) renderTemplate(w http.ResponseWriter, status int, name string, data any) {
	var text bytes.Buffer
	if err := p.templates.ExecuteTemplate(&text, name, data); err != nil {
		panic(err) // recovered by the server
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes()) // the client may have disconnected
}

// showProblem responds with an error of the API, under its status.
func (p *Page) showProblem(w http.ResponseWriter, err error) {
	said := problemOf(err)
	if after := said.RetryAfter; after > 0 {
		w.Header().Set("Retry-After", "1")
	}
	p.refuseWith(w, said.Status, said.Code, said.Detail)
}

func (p *Page) refuseWith(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("X-Hooklock-Code", code)
	p.renderTemplate(w, status, "problem", &client.Problem{Status: status, Code: code, Detail: detail})
}

// visit is a request for a screen.
type visit struct {
	api    *asker
	query  url.Values
	now    time.Time
	status *client.ReplicaStatus        // once replica has been called
	kept   *kept                        // of a stream; nil = none
	read   map[string]*client.CountList // counts that were read, by how far they go back
	marks  []client.SeenMark            // once readMarks has been called
	needs  *client.Attention            // once attentionList has been called
}

// getReplica returns the status of this replica.
func (v *visit) getReplica() (*client.ReplicaStatus, error) {
	if v.status != nil {
		return v.status, nil
	}
	var err error
	v.status, err = readObject[client.ReplicaStatus](v, "/v1/status")
	return v.status, err
}

func (p *Page) newVisit(r *http.Request) (*visit, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &client.Problem{Status: http.StatusBadRequest, Code: client.CodeBadRequest,
			Detail: "the query is not well encoded"}
	}
	return &visit{api: &asker{p.o.API, r}, query: q, now: time.Now()}, nil
}
