package page

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hooklock/admin/client"
)

// asker calls the API for a visitor: with the token, the remote address and the Host header of its
// request.
type asker struct {
	api http.Handler
	of  *http.Request
}

// readObject reads the object at path; pairs of name and value are its query. Its error is a
// *client.Problem.
func readObject[T any](v *visit, path string, pairs ...string) (*T, error) {
	into := new(T)
	if err := v.api.get(path, queryOf(pairs...), into); err != nil {
		return nil, err
	}
	return into, nil
}

func (a *asker) get(path string, query url.Values, into any) error {
	return a.do(http.MethodGet, path, query, nil, into)
}

func (a *asker) do(method, path string, query url.Values, body, into any) error {
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body) // of strings, numbers and maps
	}
	r, err := http.NewRequestWithContext(a.of.Context(), method, "http://api"+path, bytes.NewReader(text))
	if err != nil {
		return &client.Problem{Status: http.StatusBadRequest, Code: client.CodeBadRequest,
			Detail: "there is no such path"}
	}
	r.URL.RawQuery = query.Encode()
	r.Host, r.RemoteAddr, r.TLS = a.of.Host, a.of.RemoteAddr, a.of.TLS
	if given := a.of.Header.Values("Authorization"); given != nil {
		r.Header["Authorization"] = given
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer := &answer{header: http.Header{}, status: http.StatusOK}
	a.api.ServeHTTP(answer, r)
	if answer.status > 299 {
		p := &client.Problem{}
		if json.Unmarshal(answer.body.Bytes(), p) != nil || p.Code == "" {
			p.Detail = "the API did not answer as it should"
		}
		p.Status = answer.status
		if answer.header.Get("Retry-After") != "" {
			p.RetryAfter = time.Second
		}
		return p
	}
	return json.Unmarshal(answer.body.Bytes(), into)
}

// answer is an http.ResponseWriter that keeps the response.
type answer struct {
	header http.Header
	status int
	wrote  bool
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if !a.wrote {
		a.status, a.wrote = status, true
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	a.wrote = true
	return a.body.Write(text)
}

// problemOf returns the error of the API; any other error is a bug.
func problemOf(err error) *client.Problem {
	if p, ok := errors.AsType[*client.Problem](err); ok {
		return p
	}
	return &client.Problem{Status: http.StatusInternalServerError, Code: "internal_error",
		Detail: "a bug in Hooklock: " + err.Error()}
}

// isProblem reports whether the API refused with that code.
func isProblem(err error, code string) bool { return err != nil && problemOf(err).Code == code }

// pathSegment returns text as one segment of a path of the API.
func pathSegment(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

// queryOf returns a query of pairs of name and value, without those whose value is empty.
func queryOf(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}
