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
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/internal/tlsfile"
)

// ErrUnclear says that a string cannot be understood, and how one is written.
var ErrUnclear = errors.New("not a connection string: expected " +
	"postgres://student_ro:PASSWORD@host:5432/database with the password's @ : / ? # % written " +
	"%40 %3A %2F %3F %23 %25, or host=... port=... user=... password=... dbname=... with a password of other " +
	"than letters and digits in '...'")

// ErrKeyword says that a keyword is not known. It may be a piece of a password, so it is not repeated.
var ErrKeyword = errors.New("a keyword of it is not known, and not repeated here because it may be a " +
	"part of a password: expected " + strings.Join(keywords, ", "))

// keywords are those that are known. service is not, because it names a file with the host to which the
// password is sent. database is pgx's other word for dbname.
var keywords = []string{"host", "port", "user", "dbname", "database", "sslmode", "sslrootcert", "sslcert",
	"sslkey", "passfile", "password", "sslpassword", "sslcertmode", "sslsni", "sslnegotiation",
	"connect_timeout", "application_name", "target_session_attrs", "channel_binding", "require_auth",
	"options", "search_path", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout",
	"timezone", "client_encoding", "min_protocol_version", "max_protocol_version", "krbsrvname", "krbspn"}

var (
	urlScheme = regexp.MustCompile(`^postgres(?:ql)?://`)
	// keyword is one keyword=value, the value quoted or not, and what ends it.
	keyword = regexp.MustCompile(`^\s*([a-z_]+)\s*=\s*` +
		`('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*|)(?:\s|$)`)
	plain   = regexp.MustCompile(`^[A-Za-z0-9_.,:/@*+-]*$`)
	escaped = regexp.MustCompile(`(?s)\\(.)`)
	// hosts have this form. A value of another form may be a part of a password. pgx looks at the others.
	hosts = regexp.MustCompile(`^(?:[A-Za-z0-9._:%,-]|/[^\s,]*)*$`)
)

// DSN is a connection string that was understood: its values by keyword. It prints without its secrets.
type DSN map[string]string

// Parse reads a connection string. Its errors are ErrUnclear and ErrKeyword.
func Parse(text string) (DSN, error) {
	d := DSN{}
	read := d.readKeywords
	if urlScheme.MatchString(text) {
		read = d.readURL
	}
	if !read(text) || len(d) == 0 {
		return nil, ErrUnclear
	}
	for key := range d {
		if !slices.Contains(keywords, key) {
			return nil, ErrKeyword
		}
	}
	if !hosts.MatchString(d["host"]) {
		return nil, ErrUnclear
	}
	return d, nil
}

func (d DSN) readURL(text string) bool {
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
		hosts, ports = append(hosts, strings.Trim(host, "[]")), append(ports, port)
	}
	d["host"], d["port"] = strings.Join(hosts, ","), strings.Join(ports, ",")
	d["user"], d["dbname"] = u.User.Username(), strings.TrimPrefix(u.Path, "/")
	d["password"], _ = u.User.Password()
	for key, values := range query {
		if len(values) > 1 {
			return false
		}
		d[key] = values[0]
	}
	return true
}

func (d DSN) readKeywords(text string) bool {
	for strings.TrimSpace(text) != "" {
		found := keyword.FindStringSubmatch(text)
		if found == nil {
			return false
		}
		value := found[2]
		if strings.HasPrefix(value, "'") {
			value = value[1 : len(value)-1]
		}
		d[found[1]] = escaped.ReplaceAllString(value, "$1")
		text = text[len(found[0]):]
	}
	return true
}

// Text is the connection string with its secrets, as keywords in the order of their declaration.
func (d DSN) Text() string {
	var pairs []string
	for _, key := range keywords {
		value := d[key]
		if !plain.MatchString(value) {
			value = "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
		}
		if value != "" {
			pairs = append(pairs, key+"="+value)
		}
	}
	return strings.Join(pairs, " ")
}

// String is the connection string without its secrets.
func (d DSN) String() string {
	masked := maps.Clone(d)
	for _, key := range []string{"password", "sslpassword"} {
		if _, isFile := d.PasswordFile(); d[key] != "" && !(key == "password" && isFile) {
			masked[key] = rotation.Mask
		}
	}
	return masked.Text()
}

// GoString hides the secrets from %#v.
func (d DSN) GoString() string { return d.String() }

// PasswordFile returns the path in password=file:/path.
func (d DSN) PasswordFile() (path string, ok bool) {
	path, ok = strings.CutPrefix(d["password"], "file:")
	return path, ok && strings.HasPrefix(path, "/")
}

// SamePlace reports whether other leads to the same database in the same way, and differs in nothing but in
// who logs in: user and password.
func (d DSN) SamePlace(other DSN) bool {
	d, other = maps.Clone(d), maps.Clone(other)
	for _, key := range []string{"user", "password", "sslpassword"} {
		d[key], other[key] = "", ""
	}
	return d.Text() == other.Text()
}

// Files returns the paths of the certificates, keys and passwords that a connection uses, by keyword.
func (d DSN) Files() map[string]string {
	paths := map[string]string{}
	for _, key := range []string{"sslrootcert", "sslcert", "sslkey", "passfile"} {
		if path := d[key]; path != "" && path != "system" {
			paths[key] = path
		}
	}
	return paths
}

// isRemote reports whether host lies beyond this machine. A socket's path is this machine, and so is no host.
func isRemote(host string) bool {
	return host != "" && !strings.HasPrefix(host, "/") && !loopback.Is(host)
}

// Exposed returns the hosts beyond this machine to which the password may travel unencrypted, or else those
// that get it without having shown who they are. verify-ca accepts any server that has a certificate of the
// authority, under any name. There are none if Config returns an error.
func (d DSN) Exposed() (inClear, unverified []string) {
	config, err := d.Config()
	if err != nil {
		return nil, nil
	}
	first := &pgconn.FallbackConfig{Host: config.ConnConfig.Host, TLSConfig: config.ConnConfig.TLSConfig}
	for _, way := range append([]*pgconn.FallbackConfig{first}, config.ConnConfig.Fallbacks...) {
		switch {
		case !isRemote(way.Host):
		case way.TLSConfig == nil:
			inClear = append(inClear, way.Host)
		case way.TLSConfig.InsecureSkipVerify:
			unverified = append(unverified, way.Host)
		}
	}
	if len(inClear) > 0 {
		unverified = nil
	}
	return inClear, unverified
}

// Config returns the string's settings for pgx, and no others. Its errors hold no part of the string but the
// paths of certificates.
func (d DSN) Config() (*pgxpool.Config, error) {
	files := d.Files()
	for _, key := range slices.Sorted(maps.Keys(files)) { // another error each time would be logged each time
		path := files[key]
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
	mode := d["sslmode"]
	if mode == "" && (d["sslrootcert"] != "" || slices.ContainsFunc(strings.Split(d["host"], ","), isRemote)) {
		mode = "verify-full"
	}
	// pgx takes these from the home folder unless they are set. Of two equal keywords it takes the last.
	config, err := pgxpool.ParseConfig("passfile='' sslcert='' sslkey='' sslrootcert='' " + d.Text() +
		" sslmode='" + mode + "'")
	switch {
	case err == nil:
		return config, nil
	case d["sslcert"] != "" || d["sslkey"] != "":
		return nil, errors.New("its sslcert and sslkey cannot be used: expected a certificate and its key in PEM " +
			"form, both or neither, and sslpassword if the key is encrypted")
	}
	return nil, ErrUnclear // err may hold the string
}
