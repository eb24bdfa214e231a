// Package dsn reads PostgreSQL's connection strings, in both of their forms, and more strictly than libpq.
//
// A password with a / # ? or @ in it moves the borders of a URL: its end is taken for a host or a database,
// and is then shown in logs and on pages. So Parse refuses a string whose parts cannot be told apart with
// certainty, and no error repeats a part of it. Config writes the settings again for pgx, so pgx cannot read
// the string in another way. Settings from elsewhere have no effect (PG* variables, ~/.pgpass, ~/.postgresql,
// service files).
//
// For hosts other than this machine the default is sslmode=verify-full. libpq's default is prefer: if a
// server, or an attacker in between, answers "no TLS", libpq sends the password in clear.
package dsn

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
)

// Values of sslmode.
const (
	Prefer     = "prefer"
	VerifyCA   = "verify-ca"
	VerifyFull = "verify-full"
)

// ErrUnclear says that a string cannot be understood, and how one is written.
var ErrUnclear = errors.New("not a connection string: expected " +
	"postgres://student_ro:PASSWORD@host:5432/database with the password's @ : / ? # % written " +
	"%40 %3A %2F %3F %23 %25, or host=... port=... user=... password=... dbname=... with a password of other " +
	"than letters and digits in '...'")

// ErrKeyword says that a keyword is not known. It may be a piece of a password, so it is not repeated.
var ErrKeyword = errors.New("a keyword of it is not known, and not repeated here because it may be a " +
	"part of a password: expected " + strings.Join(slices.Concat(shown, hidden), ", "))

// shown are the keywords whose values may be shown. hidden are the other known keywords. service is not
// known, because it names a file with the host to which the password is sent.
var (
	shown = []string{"host", "port", "user", "dbname", "sslmode", "sslrootcert", "sslcert", "sslkey",
		"passfile"}
	hidden = []string{"password", "sslpassword", "sslcertmode", "sslsni", "sslnegotiation", "connect_timeout",
		"application_name", "target_session_attrs", "channel_binding", "require_auth", "options", "search_path",
		"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "timezone",
		"client_encoding", "min_protocol_version", "max_protocol_version", "krbsrvname", "krbspn"}
	// files are the keywords whose values are paths.
	files = []string{"sslrootcert", "sslcert", "sslkey", "passfile"}
)

// shapes are the forms of values that are shown. A value of another form may be a part of a password.
var shapes = map[string]*regexp.Regexp{
	"host":    regexp.MustCompile(`^(?:[A-Za-z0-9._:%,-]|/[^\s,]*)*$`),
	"port":    regexp.MustCompile(`^[0-9,]*$`),
	"sslmode": regexp.MustCompile(`^(?:disable|allow|prefer|require|verify-ca|verify-full)?$`),
}

// DSN is a connection string that was understood. It prints without its password.
type DSN struct {
	values map[string]string // by keyword
	shown  string            // the URL without its secrets, or "" if it was no URL
}

var (
	urlScheme = regexp.MustCompile(`^postgres(?:ql)?://`)
	// keyword is one keyword=value, the value quoted or not, and what ends it.
	keyword = regexp.MustCompile(`^\s*([a-z_]+)\s*=\s*` +
		`('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*|)(?:\s|$)`)
	plain   = regexp.MustCompile(`^[A-Za-z0-9_.,:/@*+-]*$`)
	escaped = regexp.MustCompile(`(?s)\\(.)`)
)

// Parse reads a connection string. Its errors are ErrUnclear and ErrKeyword.
func Parse(text string) (DSN, error) {
	d := &DSN{values: map[string]string{}}
	read := d.readKeywords
	if urlScheme.MatchString(text) {
		read = d.readURL
	}
	if !read(text) || len(d.values) == 0 {
		return DSN{}, ErrUnclear
	}
	if name, ok := d.values["database"]; ok {
		delete(d.values, "database")
		d.values["dbname"] = name
	}
	for key, value := range d.values {
		switch shape := shapes[key]; {
		case !slices.Contains(shown, key) && !slices.Contains(hidden, key):
			return DSN{}, ErrKeyword
		case shape != nil && !shape.MatchString(value):
			return DSN{}, ErrUnclear
		}
	}
	return *d, nil
}

func (d *DSN) readURL(text string) bool {
	u, err := url.Parse(text)
	// An @ behind the host is the end of a password that holds a / or a ?.
	if err != nil || strings.Contains(text, "#") || strings.Contains(u.EscapedPath()+u.RawQuery, "@") {
		return false
	}
	query, err := url.ParseQuery(strings.ReplaceAll(u.RawQuery, "+", "%2B"))
	if err != nil {
		return false
	}
	var hosts, ports []string
	for host := range strings.SplitSeq(u.Host, ",") {
		port := ""
		if i := strings.LastIndex(host, ":"); i > strings.LastIndex(host, "]") {
			host, port = host[:i], host[i+1:]
		}
		if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
			host = ip.String()
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	d.values["host"], d.values["port"] = strings.Join(hosts, ","), strings.Join(ports, ",")
	d.values["user"], d.values["dbname"] = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	d.values["password"], _ = u.User.Password()
	for key, values := range query {
		if !slices.Contains(shown, key) {
			u.RawQuery = rotation.Mask
		}
		switch {
		case len(values) > 1:
			return false
		case key == "ssl" && values[0] == "true": // JDBC's way, which libpq takes too
			key, values = "sslmode", []string{"require"}
		}
		d.values[key] = values[0]
	}
	d.shown = strings.Replace(u.Redacted(), ":xxxxx@", ":"+rotation.Mask+"@", 1)
	return true
}

func (d *DSN) readKeywords(text string) bool {
	for strings.TrimSpace(text) != "" {
		found := keyword.FindStringSubmatch(text)
		if found == nil {
			return false
		}
		value := found[2]
		if strings.HasPrefix(value, "'") {
			value = value[1 : len(value)-1]
		}
		d.values[found[1]] = escaped.ReplaceAllString(value, "$1")
		text = text[len(found[0]):]
	}
	return true
}

// String is the connection string without its secrets.
func (d DSN) String() string {
	if d.shown != "" {
		return d.shown
	}
	masked := maps.Clone(d.values)
	for key, value := range masked {
		_, isFile := d.PasswordFile()
		if value != "" && !slices.Contains(shown, key) && !(key == "password" && isFile) {
			masked[key] = rotation.Mask
		}
	}
	return write(masked)
}

// GoString hides the secrets from %#v.
func (d DSN) GoString() string { return d.String() }

// Text is the connection string with its secrets.
func (d DSN) Text() string { return write(d.values) }

// write writes values as keywords, in the order of their declaration.
func write(values map[string]string) string {
	var pairs []string
	for _, key := range slices.Concat(shown, hidden) {
		value := values[key]
		if !plain.MatchString(value) {
			value = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
		}
		if value != "" {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, " ")
}

// Value returns the value of a keyword.
func (d DSN) Value(keyword string) string { return d.values[keyword] }

// HasSecret reports whether the string itself holds a password. One that names a file of it does not.
func (d DSN) HasSecret() bool {
	_, isFile := d.PasswordFile()
	return d.values["sslpassword"] != "" || d.values["password"] != "" && !isFile
}

// PasswordFile returns the path in password=file:/path.
func (d DSN) PasswordFile() (path string, ok bool) {
	path, ok = strings.CutPrefix(d.values["password"], "file:")
	return path, ok && strings.HasPrefix(path, "/")
}

// WithPassword is the string with another password.
func (d DSN) WithPassword(password string) DSN {
	values := maps.Clone(d.values)
	values["password"] = password
	return DSN{values: values}
}

// SamePlace reports whether other leads to the same database in the same way, and differs in nothing but in
// who logs in: user and password.
func (d DSN) SamePlace(other DSN) bool {
	place := func(d DSN) string {
		values := maps.Clone(d.values)
		values["user"], values["password"], values["sslpassword"] = "", "", ""
		return write(values)
	}
	return place(d) == place(other)
}

// Files returns the paths of the certificates, keys and passwords that a connection uses.
func (d DSN) Files() []string {
	var paths []string
	for _, key := range files {
		if path := d.values[key]; path != "" && path != "system" {
			paths = append(paths, path)
		}
	}
	return paths
}

// Mode returns the sslmode in force. As in libpq, require with a sslrootcert means verify-ca. Without a
// sslmode it is libpq's prefer on this machine, and verify-full if any host lies beyond it.
func (d DSN) Mode() string {
	mode, root := d.values["sslmode"], d.values["sslrootcert"]
	switch {
	case root == "system": // as in libpq
		return VerifyFull
	case root != "" && mode == "require":
		return VerifyCA
	case mode != "":
		return mode
	case root != "" || len(d.remote()) > 0:
		return VerifyFull
	}
	return Prefer
}

// remote returns the hosts beyond this machine. A socket's path is this machine, and so is no host at all.
func (d DSN) remote() []string {
	var remote []string
	for host := range strings.SplitSeq(d.values["host"], ",") {
		if host != "" && !strings.HasPrefix(host, "/") && !loopback.Is(host) {
			remote = append(remote, host)
		}
	}
	return remote
}

// InClear returns the hosts beyond this machine to which the password may travel unencrypted.
func (d DSN) InClear() []string {
	if strings.HasPrefix(d.Mode(), "verify-") || d.Mode() == "require" {
		return nil
	}
	return d.remote()
}

// Unverified returns the hosts beyond this machine if connections are encrypted but do not verify the
// server's identity. verify-ca accepts any server that has a certificate of the authority, under any name.
func (d DSN) Unverified() []string {
	if mode := d.Mode(); mode == "require" || mode == VerifyCA {
		return d.remote()
	}
	return nil
}

// Config returns the string's settings for pgx, and no others. Its errors hold no part of the string but the
// paths of certificates.
func (d DSN) Config() (*pgxpool.Config, error) {
	for _, key := range files {
		path := d.values[key]
		if path == "" || path == "system" {
			continue
		}
		text, err := rotation.File(path)() // pgx would wait at a pipe
		if err == nil && (key == "sslrootcert" || key == "sslcert") {
			if _, err = tlsfile.Certificates([]byte(text)); err != nil { // pgx takes the first half of a cut-off file
				err = fmt.Errorf("%s: %w", path, err)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("its %s cannot be used: %w", key, err)
		}
	}
	for _, variable := range os.Environ() { // pgx would fill in from them
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "PG") {
			_ = os.Unsetenv(name) // a name from Environ is valid
		}
	}
	// pgx takes these from the home folder unless they are set. Of two equal keywords it takes the last.
	config, err := pgxpool.ParseConfig("passfile='' sslcert='' sslkey='' sslrootcert='' " + d.Text() +
		" sslmode=" + d.Mode())
	switch {
	case err == nil:
		return config, nil
	case d.values["sslcert"] != "" || d.values["sslkey"] != "":
		return nil, errors.New("its sslcert and sslkey cannot be used: expected a certificate and its key in PEM " +
			"form, both or neither, and sslpassword if the key is encrypted")
	}
	return nil, ErrUnclear // err may hold the string
}
