// Package dsn reads PostgreSQL's connection strings, in both of their forms, and more strictly than libpq.
//
// A password with a / # ? or @ in it moves the borders of a URL: its end is taken for a host or a database,
// and is then shown in logs and on pages. So Parse refuses a string whose parts cannot be told apart with
// certainty, and no error repeats a part of it. Config writes the parsed settings again for pgx and names
// every setting. So pgx cannot read the string in another way, and settings from elsewhere have no effect
// (PG* variables, ~/.pgpass, ~/.postgresql, service files).
//
// For hosts other than this machine the default is sslmode=verify-full. libpq's default is prefer: if a
// server, or an attacker in between, answers "no TLS", libpq sends the password in clear.
package dsn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/storestream/storestream/internal/loopback"
	"github.com/storestream/storestream/internal/tlsfile"
)

// The values of sslmode.
const (
	Disable    = "disable"
	Allow      = "allow"
	Prefer     = "prefer"
	Require    = "require"
	VerifyCA   = "verify-ca"
	VerifyFull = "verify-full"
)

// Mask stands for what may not be shown.
const Mask = "******"

// ErrUnclear says that a string cannot be understood, and how one is written.
var ErrUnclear = errors.New("not a connection string: expected " +
	"postgres://student_ro:PASSWORD@host:5432/database with the password's @ : / ? # % written " +
	"%40 %3A %2F %3F %23 %25, or host=... port=... user=... password=... dbname=... with a password of other " +
	"than letters and digits in '...', each keyword once")

// ErrKeyword says that a keyword is not known. It may be a piece of a password, so it is not repeated.
var ErrKeyword = errors.New("a keyword of it is not known, and not repeated here because it may be a " +
	"part of a password: expected " + strings.Join(slices.Concat(shown, hidden), ", "))

// shown are the keywords whose values may be shown. hidden are the other known keywords. service is not
// known, because it names a file with the host to which the password is sent.
var (
	shown = []string{"host", "port", "user", "dbname", "database", "sslmode", "sslrootcert", "sslcert", "sslkey",
		"sslcertmode", "sslsni", "sslnegotiation", "connect_timeout", "application_name", "passfile",
		"target_session_attrs", "channel_binding", "require_auth", "statement_timeout"}
	hidden = []string{"password", "sslpassword", "options", "search_path", "lock_timeout", "timezone",
		"idle_in_transaction_session_timeout", "client_encoding", "min_protocol_version", "max_protocol_version",
		"krbsrvname", "krbspn"}
)

// DSN is a connection string that was understood.
type DSN struct {
	text   string
	masked string
	values map[string]string // by keyword; "database" for dbname
	// password is the start and end of the password in text. It is 0, 0 if there is none, and for a URL.
	password [2]int
}

// Parse reads a connection string. Its errors are ErrUnclear and ErrKeyword.
func Parse(text string) (DSN, error) {
	d := DSN{text: text, values: map[string]string{}}
	var err error
	if scheme := urlScheme.FindString(text); scheme != "" {
		err = d.readURL(scheme, text[len(scheme):])
	} else {
		err = d.readKeywords()
	}
	if err == nil {
		err = d.check()
	}
	if err != nil {
		return DSN{}, err
	}
	return d, nil
}

var (
	urlScheme = regexp.MustCompile(`^postgres(?:ql)?://`)
	// keyword is one keyword=value, the value quoted or not, and what ends it.
	keyword = regexp.MustCompile(`^\s*([a-z_]+)\s*=\s*` +
		`('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)(?:[^\s\\]|\\.)*|)(?:\s|$)`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
	timeout  = regexp.MustCompile(`^[0-9]*$`)
	modes    = []string{"", Disable, Allow, Prefer, Require, VerifyCA, VerifyFull}
)

// readURL reads what follows the scheme. Everything up to the first / or ? says who and where, and there an @
// stands once at most; behind it, never.
func (d *DSN) readURL(scheme, rest string) error {
	if strings.ContainsFunc(rest, func(r rune) bool { return r == '#' || r <= ' ' || r == 0x7f }) {
		return ErrUnclear
	}
	where := rest
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		where = rest[:i]
	}
	rest = rest[len(where):]
	who, hosts, found := strings.Cut(where, "@")
	if !found {
		who, hosts = "", where
	}
	if strings.Contains(hosts, "@") || strings.Contains(rest, "@") {
		return ErrUnclear
	}
	name, password, _ := strings.Cut(who, ":")
	path, query, _ := strings.Cut(rest, "?")
	list, ports, err := splitHosts(hosts)
	if err != nil {
		return err
	}
	given := [][2]string{{"user", name}, {"password", password}, {"host", list}, {"port", ports},
		{"database", strings.TrimPrefix(path, "/")}}
	for _, pair := range given {
		value, err := url.PathUnescape(pair[1])
		if err != nil {
			return ErrUnclear
		}
		if value != "" {
			d.values[pair[0]] = value
		}
	}
	if password != "" {
		who = name + ":" + Mask
	}
	if found {
		who += "@"
	}
	d.masked = scheme + who + hosts + path
	return d.readQuery(query)
}

// splitHosts turns host:port,host:port into two lists between commas.
func splitHosts(text string) (hosts, ports string, err error) {
	var h, p []string
	for one := range strings.SplitSeq(text, ",") {
		host, port := one, ""
		if strings.HasPrefix(one, "[") {
			end := strings.IndexByte(one, ']')
			if end < 0 || len(one) > end+1 && one[end+1] != ':' {
				return "", "", ErrUnclear
			}
			host, port = one[1:end], strings.TrimPrefix(one[end+1:], ":")
			if bare, _, _ := strings.Cut(host, "%25"); net.ParseIP(bare) == nil { // %25 begins a zone
				return "", "", ErrUnclear
			}
		} else if i := strings.IndexByte(one, ':'); i >= 0 {
			host, port = one[:i], one[i+1:]
		}
		h, p = append(h, host), append(p, port)
	}
	return strings.Join(h, ","), strings.Join(p, ","), nil
}

func (d *DSN) readQuery(query string) error {
	if query == "" {
		return nil
	}
	separator, seen := "?", map[string]bool{}
	for pair := range strings.SplitSeq(query, "&") {
		key, raw, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(raw)
		if !ok || err != nil || strings.Contains(raw, "=") || seen[key] {
			return ErrUnclear
		}
		seen[key] = true
		if key == "ssl" && value == "true" { // JDBC's way, which libpq takes too
			d.values["sslmode"] = Require
		} else if err := d.set(key, value); err != nil {
			return err
		}
		if value != "" && key != "ssl" && !slices.Contains(shown, key) {
			raw = Mask
		}
		d.masked += separator + key + "=" + raw
		separator = "&"
	}
	return nil
}

func (d *DSN) readKeywords() error {
	var shownPairs []string
	seen := map[string]bool{}
	for at := 0; strings.TrimSpace(d.text[at:]) != ""; {
		found := keyword.FindStringSubmatchIndex(d.text[at:])
		if found == nil {
			return ErrUnclear
		}
		key, raw := d.text[at+found[2]:at+found[3]], d.text[at+found[4]:at+found[5]]
		value := unquote(raw)
		if err := d.set(key, value); err != nil {
			return err
		}
		if seen[key] {
			return ErrUnclear
		}
		seen[key] = true
		if key == "password" {
			d.password = [2]int{at + found[4], at + found[5]}
		}
		if _, isFile := d.PasswordFile(); !slices.Contains(shown, key) && (key != "password" || !isFile) {
			raw = Mask
		}
		shownPairs = append(shownPairs, key+"="+raw)
		at += found[1]
	}
	d.masked = strings.Join(shownPairs, " ")
	return nil
}

func unquote(raw string) string {
	if strings.HasPrefix(raw, "'") {
		raw = raw[1 : len(raw)-1]
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] == '\\' && i+1 < len(raw) {
			i++
		}
		b.WriteByte(raw[i])
	}
	return b.String()
}

func (d *DSN) set(key, value string) error {
	if !slices.Contains(shown, key) && !slices.Contains(hidden, key) {
		return ErrKeyword
	}
	if key == "dbname" {
		key = "database"
	}
	d.values[key] = value
	return nil
}

// check refuses values that are shown and are not of their usual form: they may be parts of a password.
func (d *DSN) check() error {
	hosts, ports := strings.Split(d.values["host"], ","), strings.Split(d.values["port"], ",")
	if len(ports) > 1 && len(ports) != len(hosts) {
		return ErrUnclear
	}
	for _, host := range hosts {
		_, err := netip.ParseAddr(host)
		if err != nil && !strings.HasPrefix(host, "/") && !hostName.MatchString(host) {
			return ErrUnclear
		}
	}
	for _, port := range ports {
		if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
			return ErrUnclear
		}
	}
	if len(d.values) == 0 || !slices.Contains(modes, d.values["sslmode"]) ||
		!timeout.MatchString(d.values["connect_timeout"]) {
		return ErrUnclear
	}
	for _, value := range d.values {
		if strings.ContainsRune(value, 0) {
			return ErrUnclear
		}
	}
	return nil
}

// String hides the password.
func (d DSN) String() string { return d.masked }

// GoString hides the password from %#v.
func (d DSN) GoString() string { return d.masked }

// Value returns the value of a keyword. dbname is called "database".
func (d DSN) Value(keyword string) string { return d.values[keyword] }

// HasSecret says whether the string itself holds a password. One that names a file of it does not.
func (d DSN) HasSecret() bool {
	_, isFile := d.PasswordFile()
	return d.values["sslpassword"] != "" || d.values["password"] != "" && !isFile
}

// PasswordFile is the path in password=file:/path, which only the form of keywords has.
func (d DSN) PasswordFile() (path string, ok bool) {
	path, ok = strings.CutPrefix(d.values["password"], "file:")
	return path, ok && d.password != [2]int{}
}

// KeyFile is the file of the client certificate's key; "": there is none.
func (d DSN) KeyFile() string { return d.values["sslkey"] }

// WithPassword is the string with another password, in the form of keywords.
func (d DSN) WithPassword(password string) string {
	return d.text[:d.password[0]] + quote(password) + d.text[d.password[1]:]
}

func quote(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

// SamePlace says whether other leads to the same database in the same way, and differs in nothing but in who
// logs in: user and password.
func (d DSN) SamePlace(other DSN) bool {
	place := func(d DSN) map[string]string {
		values := maps.Clone(d.values)
		maps.DeleteFunc(values, func(key, value string) bool {
			return value == "" || key == "user" || key == "password" || key == "sslpassword"
		})
		return values
	}
	return maps.Equal(place(d), place(other))
}

// Files are the paths of the certificates and keys that a connection uses.
func (d DSN) Files() []string {
	var paths []string
	for _, key := range fileKeywords {
		if path := d.values[key]; path != "" && path != "system" {
			paths = append(paths, path)
		}
	}
	return paths
}

// fileKeywords are those whose values are paths.
var fileKeywords = []string{"sslrootcert", "sslcert", "sslkey"}

// Mode returns the sslmode in force. As in libpq, require with a sslrootcert means verify-ca. Without a
// sslmode it is libpq's prefer on this machine, and verify-full if any host lies beyond it.
func (d DSN) Mode() string {
	mode, root := d.values["sslmode"], d.values["sslrootcert"]
	switch {
	case root == "system": // as libpq has it
		return VerifyFull
	case root != "" && mode == Require:
		return VerifyCA
	case mode != "":
		return mode
	case root != "" || len(d.remote()) > 0:
		return VerifyFull
	}
	return Prefer
}

// remote is the hosts beyond this machine. A socket's path is this machine, and so is no host at all.
func (d DSN) remote() []string {
	var remote []string
	for host := range strings.SplitSeq(d.values["host"], ",") {
		if host != "" && !strings.HasPrefix(host, "/") && !loopback.Is(host) {
			remote = append(remote, host)
		}
	}
	return remote
}

// InClear is the hosts beyond this machine to which the password may travel unencrypted.
func (d DSN) InClear() []string {
	if mode := d.Mode(); mode == Disable || mode == Allow || mode == Prefer {
		return d.remote()
	}
	return nil
}

// Unverified returns the hosts beyond this machine if connections are encrypted but do not verify the
// server's identity. verify-ca accepts any server that has a certificate of the authority, under any name.
func (d DSN) Unverified() []string {
	if mode := d.Mode(); mode == Require || mode == VerifyCA {
		return d.remote()
	}
	return nil
}

// defaults has every setting that pgx would otherwise look for in its environment, with pgx's own default.
var defaults = map[string]string{"host": "", "port": "", "database": "", "password": "", "passfile": "",
	"connect_timeout": "0", "sslcert": "", "sslkey": "", "sslcertmode": "allow", "sslsni": "1",
	"sslrootcert": "",
	"sslpassword": "", "sslnegotiation": "", "target_session_attrs": "any", "min_protocol_version": "",
	"max_protocol_version": "", "channel_binding": "", "require_auth": ""}

// Config returns the string's settings for pgx, and no others. Its errors hold no part of the string but the
// paths of certificates.
func (d DSN) Config() (*pgxpool.Config, error) {
	if err := d.checkFiles(); err != nil {
		return nil, err
	}
	settings := maps.Clone(defaults)
	maps.Copy(settings, d.values)
	settings["sslmode"] = d.Mode()
	if settings["user"] == "" {
		if account, err := user.Current(); err == nil {
			settings["user"] = account.Username
		}
	}
	if settings["connect_timeout"] == "" {
		settings["connect_timeout"] = "0"
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&text, "%s=%s ", key, quote(settings[key]))
	}
	// The text overrules every setting of a service, but pgx fails if the service does not exist. This is the
	// only variable that a text cannot overrule.
	if err := os.Unsetenv("PGSERVICE"); err != nil {
		return nil, fmt.Errorf("PGSERVICE is set, and cannot be unset: %w", err)
	}
	config, err := pgxpool.ParseConfig(text.String())
	switch {
	case err != nil && d.values["sslpassword"] != "":
		return nil, errors.New("its sslkey cannot be used: expected the key of sslcert in PEM form, which " +
			"sslpassword decrypts")
	case err != nil: // which may hold the string
		return nil, ErrUnclear
	}
	given := config.ConnConfig.RuntimeParams
	maps.DeleteFunc(given, func(name, _ string) bool { _, ours := d.values[name]; return !ours })
	return config, nil
}

// checkFiles returns an error that names a bad file of certificates. pgx reads as much as it can from a file
// that is cut off, and its errors may hold the string.
func (d DSN) checkFiles() error {
	texts := map[string][]byte{}
	if path := d.values["passfile"]; path != "" {
		// pgx does without one that is not there.
		if _, err := tlsfile.Read(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("its passfile cannot be read: %w", err)
		}
	}
	for _, key := range fileKeywords {
		path := d.values[key]
		if path == "" || path == "system" {
			continue
		}
		text, err := tlsfile.Read(path)
		if err != nil {
			return fmt.Errorf("its %s cannot be read: %w", key, err)
		}
		texts[key] = text
		if key == "sslkey" {
			continue
		}
		if _, err := tlsfile.Certificates(text); err != nil {
			return fmt.Errorf("its %s cannot be used: %s: %w", key, path, err)
		}
	}
	if (d.values["sslcert"] == "") != (d.values["sslkey"] == "") {
		return errors.New("it names one of sslcert and sslkey: expected both, or neither")
	}
	if d.values["sslcert"] == "" || d.values["sslpassword"] != "" { // pgx decrypts the key
		return nil
	}
	if _, err := tls.X509KeyPair(texts["sslcert"], texts["sslkey"]); err != nil {
		return fmt.Errorf("its sslcert and sslkey cannot be used: %w", err)
	}
	return nil
}
