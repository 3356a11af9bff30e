package page

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hooklock/admin/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const anID = "exec_mjyg3x6slz3ns4tdjh2hkbwzqi4dr7xk"

// scripted is an API that answers as a test says, by method and path.
type scripted struct {
	mu      sync.Mutex
	answers map[string]any // a *client.Problem is a refusal
	asked   []string
	headers []http.Header
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.RequestURI())
	s.headers = append(s.headers, r.Header)
	answer, known := s.answers[r.URL.Path]
	if !known {
		answer = &client.Problem{Status: 404, Code: client.CodeNotFound, Detail: "nothing here"}
	}
	if p, is := answer.(*client.Problem); is {
		w.WriteHeader(p.Status)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(text)
}

func (s *scripted) set(path string, answer any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[path] = answer
}

// hostile is what senders may call things.
const hostile = `"><img src=x onerror=alert(1)><script>alert(2)</script>'` + "`javascript:alert(3)</textarea></dialog>{{.}}"

// fill puts text into every text of v, some of everything into every list, and a time into every
// time.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Float64:
		v.SetFloat(300)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			fill(v.Index(0), text)
			fill(v.Index(1), text)
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		v.Set(reflect.MakeMap(v.Type()))
		fill(value, text)
		v.SetMapIndex(reflect.ValueOf(text), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), text)
			}
		}
	}
}

func filled[T any](text string) *T {
	v := new(T)
	fill(reflect.ValueOf(v).Elem(), text)
	return v
}

// everything is an API that knows of everything, and calls it text.
func everything(text string) *scripted {
	locks, found := filled[client.LockPage](text), filled[client.ExecutionPage](text)
	locks.NextCursor = ""
	x := filled[client.Execution](text)
	lock := filled[client.Lock](text)
	lock.ExecutionID = x.ExecutionID
	slots := filled[client.SlotPage](text)
	slots.Slots[0].Number, slots.Slots[1].Number = 0, -1
	return &scripted{answers: map[string]any{
		"/v1/attention": filled[client.Attention](text), "/v1/replicas": filled[client.ReplicaList](text),
		"/v1/seen": filled[client.SeenList](text), "/v1/slots": slots,
		"/v1/pauses/workflow:w": filled[client.Pause](text), "/v1/status": filled[client.ReplicaStatus](text),
		"/v1/locks": locks, "/v1/executions": found, "/v1/executions/" + anID: x, "/v1/locks/" + text: lock,
		"/v1/locks/w": lock, "/v1/report": filled[client.Report](text), "/v1/routes": filled[client.RouteList](text),
		"/v1/audit": filled[client.AuditPage](text), "/v1/suggestions": filled[client.SuggestionList](text),
		"/v1/signatures":    filled[client.BadSignaturePage](text),
		"/v1/routes/counts": filled[client.CountList](text), "/v1/jobs": &client.Job{Matched: 3},
	}}
}

func newPage(t *testing.T, api http.Handler) *httptest.Server {
	t.Helper()
	life, end := context.WithCancel(context.Background())
	p := New(Options{API: api, Life: life, Every: time.Millisecond})
	server := httptest.NewServer(p)
	t.Cleanup(func() { end(); server.Close() })
	return server
}

func get(t *testing.T, server *httptest.Server, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// looks are one address of each kind.
func looks() []string {
	all := []string{
		"/", "/page/now", "/page/find?text=evt_1&status=FAILED", "/page/find", "/page/story?id=" + anID, "/page/needs",
		"/page/routes", "/page/audit", "/page/signatures", "/page/suggestions", "/page/nothing",
		"/page/ask?do=nothing", "/page/bar",
	}
	for _, do := range []string{"cancel", "forget", "run", "skip", "rerun", "again"} {
		all = append(all, "/page/ask?do="+do+"&id="+anID)
	}
	all = append(all, "/page/ask?do=pause&scope=workflow:w", "/page/ask?do=resume&scope=workflow:w")
	for _, do := range []string{"all-cancel", "all-forget", "all-run", "all-skip", "all-rerun"} {
		all = append(all, "/page/ask?state=blocked&do="+do)
	}
	return append(all, "/page/ask?do=reload", "/page/ask?do=release&workflow=w&id="+anID)
}

var (
	tags       = regexp.MustCompile(`<([a-zA-Z][a-zA-Z0-9]*)([^>]*)>`)
	attributes = regexp.MustCompile(`([a-zA-Z-]+)(?:="([^"]*)")?`)
)

func TestWhatSendersSendIsTextAndNothingElse(t *testing.T) {
	known := map[string]bool{}
	for tag := range strings.FieldsSeq(`html head meta title link script body a header p nav ul li kbd form label input div span button main h1 noscript dialog h2 footer section table
		caption thead tr th tbody td dl dt dd time select option details summary ol svg line rect pre progress text g path`) {
		known[tag] = true
	}
	for _, path := range looks() {
		plainServer, hostileServer := newPage(t, everything("plain")), newPage(t, everything(hostile))
		_, plain := get(t, plainServer, path)
		res, text := get(t, hostileServer, path)
		if policy := res.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'self'") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		scripts := 0
		for _, tag := range tags.FindAllStringSubmatch(text, -1) {
			if !known[tag[1]] {
				t.Errorf("%s: has %s", path, tag[0])
			}
			if tag[1] == "script" {
				scripts++
			}
			for _, a := range attributes.FindAllStringSubmatch(tag[2], -1) {
				value := html.UnescapeString(a[2])
				switch name := strings.ToLower(a[1]); {
				case strings.HasPrefix(name, "on") && a[2] != "", name == "style":
					t.Errorf("%s: the policy of the page would refuse %s", path, tag[0])
				case (name == "href" || name == "src" || name == "action") &&
					(strings.HasPrefix(value, "/") || strings.Contains(value, ":") && !strings.HasPrefix(value, "#")):
					t.Errorf("%s: %s does not work below a path prefix, or leads elsewhere", path, tag[0])
				}
			}
		}
		if n := strings.Count(plain, "<script"); scripts != n {
			t.Errorf("%s: %d scripts, want %d", path, scripts, n)
		}
		if got, want := len(tags.FindAllString(text, -1)),
			len(tags.FindAllString(plain, -1)); got > want+want/4 && path != "/" {
			t.Errorf("%s: %d elements where plain names make %d", path, got, want)
		}
	}
}

func TestEachScreenAndQuestionShowsWhatTheAPIKnows(t *testing.T) {
	server := newPage(t, everything("plain"))
	for _, path := range looks()[1:] {
		res, text := get(t, server, path)
		want := http.StatusOK
		if strings.Contains(path, "nothing") {
			want = http.StatusNotFound
		}
		if res.StatusCode != want ||
			want == http.StatusOK && !strings.Contains(path, "reload") && !strings.Contains(path, "all-") &&
				!strings.Contains(text, "plain") {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
		if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Content-Type-Options") != "nosniff" ||
			res.Header.Get("X-Frame-Options") != "DENY" || len(res.Header.Values("Set-Cookie")) != 0 {
			t.Errorf("%s: %v", path, res.Header)
		}
	}
	if res, _ := get(t, server, "/page/page.js"); res.Header.Get("Content-Type") != "text/javascript; charset=utf-8" ||
		res.Header.Get("ETag") == "" {
		t.Errorf("%v", res.Header)
	}
	res, err := server.Client().Post(server.URL+"/page/now", "text/plain", strings.NewReader("x"))
	if err != nil || res.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("%v %v", res, err)
	}
	_ = res.Body.Close()
}

func TestALockOfAParkedEventSaysWhatItWaitsFor(t *testing.T) {
	api := everything("plain")
	lock := func(workflow string, p client.Parked) client.Lock {
		return client.Lock{Workflow: workflow, ExecutionID: anID, Parked: &p}
	}
	next := client.Time{Time: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}
	api.set("/v1/locks", &client.LockPage{
		Locks: []client.Lock{
			lock("a", client.Parked{Blocked: "attempts_exhausted"}), lock("b", client.Parked{NextAttempt: next}),
			lock("c", client.Parked{})}})
	_, text := get(t, newPage(t, api), "/page/now")
	for _, want := range []string{">blocked<", "attempts_exhausted", "needs a decision", ">parked<", "next try"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, ">running<") || strings.Contains(text, "when the service answers") {
		t.Errorf("it is said to run: %s", text)
	}
}

// untagged is what a person reads of a screen.
func untagged(text string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(regexp.MustCompile(`</[^>]*>`).ReplaceAllString(text, ""), " "))), " ")
}

func TestWhatIsSaidInOneLineIsASentence(t *testing.T) {
	api := everything("plain")
	lock := client.Lock{Workflow: "plain", ExecutionID: anID, Held: true, EndsBy: "hold",
		ExpiresAt: client.Time{Time: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)}}
	x := filled[client.Execution]("plain")
	x.ExecutionID, x.Status = anID, client.Running
	api.set("/v1/executions/"+anID, x)
	api.set("/v1/locks/plain", &lock)
	server := newPage(t, api)
	for path, want := range map[string]string{
		"/page/now":              "3, 3 blocked, 3 dead letters, longest ",
		"/page/story?id=" + anID: "held, 0 waiting, ends by hold ",
	} {
		if _, text := get(t, server, path); !strings.Contains(untagged(text), want) {
			t.Errorf("%s: no %q in %s", path, want, untagged(text))
		}
	}
}

func TestTheAPIIsAskedInTheNameOfTheVisitor(t *testing.T) {
	api := everything("plain")
	server := newPage(t, api)
	get(t, server, "/page/now", "Authorization", "Bearer secret", "Cookie", "a=b", "X-Forwarded-For", "10.0.0.1")
	if len(api.headers) == 0 {
		t.Fatal("nobody was asked")
	}
	for i, h := range api.headers {
		if h.Get("Authorization") != "Bearer secret" || len(h) != 1 {
			t.Errorf("%s with %v", api.asked[i], h)
		}
	}
}

func TestARefusalOfTheAPIIsThePagesOwn(t *testing.T) {
	for _, status := range []int{401, 403, 404, 429, 503} {
		p := &client.Problem{Status: status, Code: "some_code", Detail: "give a <token>"}
		api := &scripted{answers: map[string]any{}}
		for _, path := range []string{
			"/v1/status", "/v1/locks", "/v1/seen", "/v1/slots", "/v1/executions", "/v1/executions/" + anID,
			"/v1/report", "/v1/routes", "/v1/audit", "/v1/signatures", "/v1/suggestions", "/v1/attention",
			"/v1/replicas"} {
			api.set(path, p)
		}
		server := newPage(t, api)
		for _, path := range []string{
			"/page/now", "/page/live", "/page/find", "/page/story?id=" + anID, "/page/needs", "/page/routes",
			"/page/audit", "/page/signatures", "/page/suggestions", "/page/ask?do=cancel&id=" + anID} {
			api.asked = nil
			res, text := get(t, server, path)
			if res.StatusCode != status || !strings.Contains(text, "give a &lt;token&gt;") ||
				!strings.Contains(text, "some_code") {
				t.Errorf("%s: %d %s", path, res.StatusCode, text)
			}
			if len(api.asked) != 1 {
				t.Errorf("%s: a wrong token was shown %d times: %v", path, len(api.asked), api.asked)
			}
		}
	}
}

func TestWhileEtcdIsAwayThePageSaysWhatItKnowsAndSinceWhen(t *testing.T) {
	api := everything("plain")
	away := &client.Problem{
		Status: 503, Code: client.CodeStoreUnavailable, Detail: "etcd does not answer in time; ask again"}
	s := filled[client.ReplicaStatus]("plain")
	at := client.Time{Time: time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)}
	s.Etcd.Members = []client.Contact{
		{Address: "http://etcd-0:2379", State: client.ContactFails, FailedAt: at, AnsweredAt: at,
			Failure: "UNAVAILABLE"}}
	for path, answer := range map[string]any{
		"/v1/locks": away, "/v1/slots": away, "/v1/routes/counts": away, "/v1/executions": away, "/v1/audit": away,
		"/v1/signatures": away, "/v1/executions/" + anID: away, "/v1/status": s, "/v1/replicas": away,
		"/v1/attention": &client.Attention{NotKnown: []string{"executions: etcd does not answer in time"}}} {
		api.set(path, answer)
	}
	server := newPage(t, api)
	for _, path := range []string{
		"/page/now", "/page/find", "/page/story?id=" + anID, "/page/needs", "/page/audit", "/page/signatures",
		"/page/latency?route=x"} {
		res, text := get(t, server, path)
		if res.StatusCode != http.StatusOK || !strings.Contains(text, "etcd does not answer") {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
	_, text := get(t, server, "/page/now")
	for _, want := range []string{"etcd-0:2379", "UNAVAILABLE", "2026-11-22T09:00:00.000Z", "running, this replica"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not said: %s", want, text)
		}
	}
}

func TestATokenForSomeWorkflowsSeesNothingThatIsOverAllOfThem(t *testing.T) {
	api := everything("plain")
	limited := &client.Problem{Status: 403, Code: client.CodeForbidden, Detail: "the status is over all workflows, and the token is limited to some"}
	for _, path := range []string{"/v1/status", "/v1/report", "/v1/routes"} {
		api.set(path, limited)
	}
	api.set("/v1/attention", &client.Attention{Limited: true})
	server := newPage(t, api)
	for _, path := range []string{"/page/now", "/page/needs", "/page/routes"} {
		res, text := get(t, server, path)
		if res.StatusCode != http.StatusOK || !strings.Contains(text, "Not for this token") {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
}

func TestWhatIsParkedIsFoundByWhatTheAPICanDoItTo(t *testing.T) {
	page := &client.ExecutionPage{Executions: []client.Execution{
		{ExecutionID: anID, Workflow: "w", Route: "r", EventID: "mine", Parked: &client.Parked{}},
	}}
	api := &scripted{answers: map[string]any{"/v1/executions": page}}
	server := newPage(t, api)
	_, text := get(t, server, "/page/find?state=blocked&route=r&label=order%3D1")
	if !strings.Contains(text, "mine") || !strings.Contains(text, "do=all-skip&amp;label=order%3D1&amp;route=r&amp;state=blocked") {
		t.Errorf("%s", text)
	}
	if !strings.Contains(api.asked[0], "parked=true&route=r&state=blocked") {
		t.Errorf("%v", api.asked)
	}
	for query, asked := range map[string]string{
		"prefix=w": "prefix=w", "since=1h": "since=1h", "event=mine": "event=mine", "text=mine": "event=mine"} {
		api.asked = nil
		if _, text := get(t, server, "/page/find?state=blocked&"+query); strings.Contains(text, "all-skip") ||
			!strings.Contains(text, "mine") {
			t.Errorf("%s: a button for more than is shown: %s", query, text)
		}
		if all := strings.Join(api.asked, " "); !strings.Contains(all, asked) ||
			strings.Count(all, "parked=true&") != strings.Count(all, "/v1/executions") {
			t.Errorf("%s: %v", query, api.asked)
		}
	}
}

// events reads a stream.
type events struct {
	t *testing.T
	r *bufio.Reader
}

func (e *events) next() (kind string, c change) {
	e.t.Helper()
	for {
		line, err := e.r.ReadString('\n')
		if err != nil {
			e.t.Fatal(err)
		}
		if k, is := strings.CutPrefix(line, "event: "); is {
			kind = strings.TrimSpace(k)
		}
		if data, is := strings.CutPrefix(line, "data: "); is {
			if kind == "change" {
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					e.t.Fatal(err)
				}
			}
			return kind, c
		}
	}
}

func TestTheStreamSaysWhatHasChangedAndNothingElse(t *testing.T) {
	api := everything("plain")
	lock := func(name string, waiting int) client.Lock {
		return client.Lock{Workflow: name, ExecutionID: anID, Waiting: waiting,
			LockedAt: client.Time{Time: time.Unix(0, 0)}}
	}
	of := func(all ...client.Lock) *client.LockPage { return &client.LockPage{Locks: all} }
	api.set("/v1/locks", of(lock("a", 0), lock("b", 0)))
	server := newPage(t, api)
	res, err := server.Client().Get(server.URL + "/page/live")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if media := res.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/event-stream") {
		t.Fatalf("%s", media)
	}
	e := &events{t, bufio.NewReader(res.Body)}
	_, first := e.next()
	if len(first.Rows) != 2 || len(first.Order) != 2 || *first.Count != 2 || len(first.Sections) != 6 {
		t.Fatalf("%+v", first)
	}
	if _, c := e.next(); len(c.Rows)+len(c.Order)+len(c.Gone)+len(c.Sections) != 0 {
		t.Errorf("nothing has changed: %+v", c)
	}
	until := func(f func(c change) bool) change {
		for {
			if _, c := e.next(); f(c) {
				return c
			}
		}
	}
	api.set("/v1/locks", of(lock("b", 1), lock("c", 0)))
	c := until(func(c change) bool { return len(c.Gone) > 0 })
	if c.Gone[0] != anID+" a" || len(c.Rows) != 2 || c.Rows[anID+" c"] == "" ||
		!strings.Contains(c.Rows[anID+" b"], "1 waiting") {
		t.Errorf("%+v", c)
	}
	api.set("/v1/locks", &client.Problem{Status: 503, Code: client.CodeStoreUnavailable})
	if c := until(func(c change) bool { return c.Trouble != "" }); len(c.Gone)+len(c.Rows) != 0 {
		t.Errorf("what is not known is not gone: %+v", c)
	}
	api.set("/v1/locks", of(lock("b", 1), lock("c", 0)))
	if c := until(func(c change) bool { return c.Trouble == "" }); len(c.Rows)+len(c.Gone) != 0 {
		t.Errorf("it is as before: %+v", c)
	}
	api.set("/v1/status", &client.Problem{Status: 401, Code: client.CodeUnauthorized})
	for {
		if kind, _ := e.next(); kind == "problem" {
			break
		}
	}
	if _, err := e.r.ReadString('x'); err != io.EOF {
		t.Errorf("a token that was taken away: %v", err)
	}
}

func TestStreamsAreBoundedAndEndWithTheProcess(t *testing.T) {
	life, end := context.WithCancel(context.Background())
	server := httptest.NewServer(New(Options{API: everything("plain"), Life: life, Every: time.Hour}))
	defer server.Close()
	var open []*http.Response
	for range maxStreams {
		res, err := server.Client().Get(server.URL + "/page/live")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		open = append(open, res)
	}
	if res, _ := get(t, server, "/page/live"); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", res.StatusCode)
	}
	end()
	for _, res := range open {
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Error(err)
		}
		_ = res.Body.Close()
	}
}
