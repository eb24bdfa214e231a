package storefake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// failure is an answer that is not rows.
type failure struct {
	status  int
	code    string // machine-readable
	message string // for people
	param   string // the wrong parameter, or ""
}

var (
	unauthorized = &failure{401, "unauthorized",
		"a valid API key is required: Authorization: Bearer <API_KEY>", ""}
	notFound         = &failure{404, "not_found", "there is no such endpoint", ""}
	methodNotAllowed = &failure{405, "method_not_allowed", "only GET is allowed", ""}
	internalError    = &failure{500, "internal_error", "the request could not be served", ""}
)

// ErrorForm is the form of an answer that is not rows.
type ErrorForm string

// Forms of answers that are not rows.
const (
	ErrorAsIs    ErrorForm = ""          // {"error":"invalid_param","message":"..."}
	ErrorFastAPI ErrorForm = "fastapi"   // {"detail":[{"type","loc","msg"}]}, 422 for a wrong parameter
	ErrorNest    ErrorForm = "nest"      // {"statusCode":400,"message":["..."],"error":"Bad Request"}
	ErrorSpring  ErrorForm = "spring"    // {"timestamp","status","error","path"}, without a message
	ErrorProblem ErrorForm = "problem"   // RFC 9457, application/problem+json
	ErrorLaravel ErrorForm = "laravel"   // {"message","errors":{}}, 422 for a wrong parameter
	ErrorWord    ErrorForm = "wordpress" // {"code":"rest_...","message","data":{"status":400}}
)

var errorForms = []ErrorForm{ErrorFastAPI, ErrorNest, ErrorSpring, ErrorProblem, ErrorLaravel, ErrorWord}

// fail answers with f, in the form of the service's habits.
func (x *exchange) fail(f *failure) {
	h, status, contentType := &x.read.Habits, f.status, "application/json"
	if f.code == "invalid_param" && (h.Errors == ErrorFastAPI || h.Errors == ErrorLaravel) {
		status = http.StatusUnprocessableEntity
	}
	if f == unauthorized && h.KeyStatus > 0 {
		status = h.KeyStatus
	}
	if h.Errors == ErrorProblem {
		contentType = "application/problem+json"
	}
	body, _ := json.Marshal(h.Errors.body(f, status, x)) // of strings and numbers: cannot fail
	x.w.Header().Set("Content-Type", contentType)
	x.w.WriteHeader(status)
	_, _ = x.w.Write(append(h.begin(nil), append(body, '\n')...)) // a client that has gone misses nothing
}

// body is the content of an answer with f.
func (e ErrorForm) body(f *failure, status int, x *exchange) any {
	text := http.StatusText(status)
	switch e {
	case ErrorFastAPI:
		if f.param == "" {
			return map[string]any{"detail": f.message}
		}
		return map[string]any{"detail": []any{map[string]any{"type": f.code, "loc": []string{"query", f.param},
			"msg": f.message}}}
	case ErrorNest:
		if f.param == "" {
			return map[string]any{"statusCode": status, "message": text}
		}
		return map[string]any{"statusCode": status, "message": []string{f.message}, "error": text}
	case ErrorSpring:
		return map[string]any{"timestamp": x.server.clock.Now().Format("2006-01-02T15:04:05.000-07:00"),
			"status": status, "error": text, "path": x.r.URL.Path}
	case ErrorProblem:
		body := map[string]any{"type": "https://tools.ietf.org/html/rfc9110", "title": text, "status": status,
			"traceId": fmt.Sprintf("00-%032x-00", x.number)}
		if f.param != "" {
			body["errors"] = map[string]any{f.param: []string{f.message}}
		}
		return body
	case ErrorLaravel:
		if f.param == "" {
			return map[string]any{"message": f.message}
		}
		return map[string]any{"message": f.message, "errors": map[string]any{f.param: []string{f.message}}}
	case ErrorWord:
		return map[string]any{"code": "rest_" + strings.TrimPrefix(f.code, "rest_"), "message": f.message,
			"data": map[string]any{"status": status}}
	default:
		return map[string]any{"error": f.code, "message": f.message}
	}
}

// writeHTML answers as something in front of the service would: status and page, no JSON.
func (f *failure) writeHTML(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(f.status)
	_, _ = fmt.Fprintf(w,
		"<html><head><title>%d %s</title></head><body><center><h1>%[1]d %[2]s</h1></center></body></html>\n",
		f.status, http.StatusText(f.status))
}

func pastEnd(form PastEnd) *failure {
	if form == PastEndNotFound {
		return &failure{404, "not_found", "there is no such page", ""}
	}
	return invalid("page", "is beyond the last page")
}
