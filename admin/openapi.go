package admin

import (
	_ "embed" // openapi.json
	"net/http"
	"strconv"
)

//go:generate go test -run TestOpenAPIIsGeneratedFromTheEndpointsAndTypes -update .

//go:embed openapi.json
var openAPI []byte

// serveOpenAPI serves the description of the API (https://spec.openapis.org/oas/v3.1.1.html).
func serveOpenAPI(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed("GET", "HEAD").write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(openAPI)))
	_, _ = w.Write(openAPI) // the client may have disconnected
}
