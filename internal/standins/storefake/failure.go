package storefake

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// failure is an answer that is not rows.
type failure struct {
	status  int
	code    string // machine-readable
	message string // for people
}

var (
	unauthorized = &failure{401, "unauthorized",
		"a valid API key is required: Authorization: Bearer <API_KEY>"}
	notFound         = &failure{404, "not_found", "there is no such endpoint"}
	methodNotAllowed = &failure{405, "method_not_allowed", "only GET is allowed"}
	internalError    = &failure{500, "internal_error", "the request could not be served"}
)

func (f *failure) write(w http.ResponseWriter) {
	body, _ := json.Marshal(map[string]string{"error": f.code, "message": f.message}) // of strings: cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_, _ = w.Write(append(body, '\n')) // a client that has gone misses nothing
}

// writeHTML answers as something in front of the service would: status and page, no JSON.
func (f *failure) writeHTML(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(f.status)
	_, _ = fmt.Fprintf(w,
		"<html><head><title>%d %s</title></head><body><center><h1>%[1]d %[2]s</h1></center></body></html>\n",
		f.status, http.StatusText(f.status))
}

func pastEnd(w http.ResponseWriter, form PastEnd) {
	if form == PastEndNotFound {
		(&failure{404, "not_found", "there is no such page"}).write(w)
		return
	}
	invalid("page", "is beyond the last page").write(w)
}
