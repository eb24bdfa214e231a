package rotation

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// leastHidden is the length in bytes of the shortest secret that is hidden. A shorter one is found in words
	// that are no secret.
	leastHidden = 8
	// mostEarlier is how many values of one setting are hidden, the latest ones. A server that was sent a value
	// may still repeat it after the value was replaced.
	mostEarlier = 8
)

// Hidden masks secrets in texts. A program that was sent a secret may repeat it in its answer: a debugging
// proxy returns the request, a database quotes the password that it refuses. So texts are searched for
// secrets before they leave the process. Hidden is safe for concurrent use.
type Hidden struct {
	openly string
	users  []string

	mu      sync.Mutex
	secrets map[string][]string // by setting, the latest last
	found   atomic.Pointer[strings.Replacer]
}

// NewHidden returns a Hidden without secrets. openly is text that may be shown. If a secret occurs in it (a
// password that equals the user's name), it is not hidden: the masks would garble texts and give the secret
// away. users are the names that secrets are sent with. For HTTP both become one text, in base64.
func NewHidden(openly string, users ...string) *Hidden {
	return &Hidden{openly: openly, users: users, secrets: map[string][]string{}}
}

// Add hides a secret of a setting from now on, along with its earlier ones.
func (h *Hidden) Add(setting, secret string) {
	if h == nil || len(secret) < leastHidden || strings.Contains(h.openly, secret) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	given := h.secrets[setting]
	if slices.Contains(given, secret) {
		return
	}
	h.secrets[setting] = append(given[max(0, len(given)+1-mostEarlier):len(given):len(given)], secret)
	var forms []string
	for _, secrets := range h.secrets {
		for _, s := range secrets {
			forms = append(forms, h.forms(s)...)
		}
	}
	// Of two that begin alike the longer one is replaced.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range forms {
		pairs = append(pairs, form, Mask)
	}
	h.found.Store(strings.NewReplacer(pairs...))
}

// Hide returns text with each secret in it masked.
func (h *Hidden) Hide(text string) string {
	if h == nil {
		return text
	}
	if found := h.found.Load(); found != nil {
		return found.Replace(text)
	}
	return text
}

// inQuotes is a text of JSON, with its quotes.
var inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// HideJSON returns JSON with each secret in its texts masked. Numbers stay, because no program repeats a
// secret as a number, and a mask in its place would break the JSON.
func (h *Hidden) HideJSON(text string) string { return inQuotes.ReplaceAllStringFunc(text, h.Hide) }

// forms are the ways in which a secret is written on its way to others and back: as it is, in a URL, in
// base64, alone and with a user's name, and any of these quoted, or in JSON, once or within another one.
func (h *Hidden) forms(secret string) []string {
	forms := []string{secret, url.QueryEscape(secret), url.PathEscape(secret)}
	texts := []string{secret}
	for _, user := range h.users {
		texts = append(texts, user+":"+secret)
	}
	for _, text := range texts { // without padding: with it, they begin so
		forms = append(forms, base64.RawStdEncoding.EncodeToString([]byte(text)),
			base64.RawURLEncoding.EncodeToString([]byte(text)))
	}
	for range 2 {
		for _, form := range forms {
			inJSON, _ := json.Marshal(form) // a text can be encoded
			quoted := strconv.Quote(form)
			forms = append(forms, string(inJSON[1:len(inJSON)-1]), quoted[1:len(quoted)-1])
		}
		slices.Sort(forms)
		forms = slices.Compact(forms)
	}
	return forms
}
