package dsn

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
)

// parse reads what must be understood.
func parse(t *testing.T, text string) DSN {
	t.Helper()
	d, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestBeyondThisMachineAConnectionIsVerifiedUnlessItSaysOtherwise(t *testing.T) {
	authority := servers.AuthorityForTest(t, t.TempDir()).File
	for _, test := range []struct{ text, inClear, unverified string }{
		{"postgres://u:p@db/store", "", ""},
		{"host=db user=u password=p", "", ""},
		{"postgres://u:p@127.0.0.1,db/store", "", ""},
		{"host=/run/pg,db user=u", "", ""},
		{"postgres://u:p@db/store?sslmode=", "", ""},
		{"postgres://u:p@db/store?sslmode=require", "", "db"},
		{"postgres://u:p@db/store?sslmode=require&sslrootcert=" + authority, "", "db"},
		{"postgres://u:p@db/store?sslmode=verify-ca", "", "db"},
		{"postgres://u:p@db/store?sslmode=disable", "db", ""},
		{"postgres://u:p@db/store?sslmode=allow", "db", ""},
		{"postgres://u:p@db/store?sslmode=prefer", "db", ""},
		{"postgres://u:p@localhost:1,db:5433,10.0.0.1:3/store?sslmode=disable", "db,10.0.0.1", ""},
		{"postgres://u:p@127.0.0.1/store?host=db&sslmode=disable", "db", ""},
		{"postgres://u:p@127.0.0.1,db/store?sslmode=disable", "db", ""},
		{"host='/run/pg,db' sslmode=prefer user=u", "db", ""},
		{"postgres://u:p@localhost/store", "", ""},
		{"postgres://u:p@[::1]:6432/store", "", ""},
		{"postgres://u:p@/store?host=/run/postgresql", "", ""},
		{"user=u dbname=store", "", ""},
		{"host=db user=u sslmode=disable sslrootcert=system", "", ""},
	} {
		inClear, unverified := parse(t, test.text).Exposed()
		if strings.Join(inClear, ",") != test.inClear || strings.Join(unverified, ",") != test.unverified {
			t.Errorf("%s: in clear to %q, unverified %q, expected %q, %q", test.text, inClear, unverified,
				test.inClear, test.unverified)
		}
	}
	for text, encrypted := range map[string]bool{"host=localhost user=u": false,
		"host=localhost user=u sslrootcert=" + authority: true} {
		config, err := parse(t, text).Config()
		if err != nil || (len(config.ConnConfig.Fallbacks) == 0) != encrypted {
			t.Errorf("%s: %v, expected that it is always encrypted: %v", text, err, encrypted)
		}
	}
}

// pgx tries a fallback without TLS where a server answers that it has none.
func TestWhatIsVerifiedHasNoFallbackWithoutTLS(t *testing.T) {
	config, err := parse(t, "postgres://u:p@db,other/store").Config()
	if err != nil {
		t.Fatal(err)
	}
	c := config.ConnConfig
	if c.TLSConfig == nil || c.TLSConfig.InsecureSkipVerify || c.TLSConfig.ServerName != "db" {
		t.Errorf("db is reached with %+v", c.TLSConfig)
	}
	if len(c.Fallbacks) != 1 || c.Fallbacks[0].Host != "other" || c.Fallbacks[0].TLSConfig == nil ||
		c.Fallbacks[0].TLSConfig.InsecureSkipVerify {
		t.Errorf("fallbacks %+v", c.Fallbacks)
	}
}

func TestNothingActsThatTheStringDoesNotSay(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.WriteFile(filepath.Join(home, ".pgpass"), []byte("*:*:*:*:fr0mpgpass\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"root.crt", "postgresql.crt", "postgresql.key"} {
		if err := os.WriteFile(filepath.Join(home, ".postgresql", name), []byte("none"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"PGHOST": "evil", "PGPORT": "1", "PGDATABASE": "evil",
		"PGUSER": "evil", "PGPASSWORD": "evil", "PGPASSFILE": filepath.Join(home, ".pgpass"),
		"PGAPPNAME":         "evil",
		"PGCONNECT_TIMEOUT": "77", "PGSSLMODE": "disable", "PGSSLROOTCERT": "/evil", "PGSSLCERT": "/evil",
		"PGSSLKEY": "/evil", "PGSSLSNI": "0", "PGSSLNEGOTIATION": "direct", "PGTARGETSESSIONATTRS": "standby",
		"PGSERVICE": "evil", "PGSERVICEFILE": "/evil", "PGTZ": "evil", "PGOPTIONS": "evil",
		"PGMINPROTOCOLVERSION": "3.2", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none"} {
		t.Setenv(name, value)
	}
	config, err := parse(t, "postgres://reader@db").Config()
	if err != nil {
		t.Fatal(err)
	}
	c := config.ConnConfig
	if c.Host != "db" || c.Port != 5432 || c.User != "reader" || c.Password != "" || c.Database != "" ||
		c.ConnectTimeout != 0 || len(c.RuntimeParams) > 0 || c.ValidateConnect != nil || c.TLSConfig == nil ||
		c.TLSConfig.RootCAs != nil || len(c.TLSConfig.Certificates) > 0 || c.ChannelBinding != "prefer" ||
		c.RequireAuth != "" || c.SSLNegotiation != "" || c.TLSConfig.ServerName != "db" ||
		c.MinProtocolVersion != "3.0" {
		t.Errorf("%+v, TLS %+v", c.Config, c.TLSConfig)
	}
	if c, err := parse(t, "user=me").Config(); err != nil || c.ConnConfig.Host == "evil" {
		t.Errorf("without a host: %v, %v", c.ConnConfig.Host, err)
	}
}

func TestWhatAStringSaysIsWhatPgxConnectsBy(t *testing.T) {
	for _, text := range []string{
		"postgres://u%40x:p%2F%23%3F%25%27%5C%20s@db:6432/sto%2Fre?application_name=a%20b&" +
			"statement_timeout=5",
		`host=db port=6432 user=u@x password='p/#?%\'\\ s' dbname=sto/re application_name='a b' ` +
			`statement_timeout=5`,
		`host=db port=6432 user = u@x password=p/#?%\'\\\ s database=sto/re application_name=a\ b ` +
			`statement_timeout=5`,
	} {
		config, err := parse(t, text).Config()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		c := config.ConnConfig
		if c.Host != "db" || c.Port != 6432 || c.User != "u@x" || c.Password != `p/#?%'\ s` ||
			c.Database != "sto/re" || c.RuntimeParams["application_name"] != "a b" ||
			c.RuntimeParams["statement_timeout"] != "5" {
			t.Errorf("%s: %+v", text, c.Config)
		}
	}
}

func TestAStringThatCanBeReadInTwoWaysIsRefusedAndNotRepeated(t *testing.T) {
	for _, text := range []string{"", "s3cret", "postgres://me:s3c/ret@h/db", "postgres://me:s3c?ret@h/db",
		"postgres://me:s3c#ret@h/db", "postgres://me:s3cret",
		"postgres://me:1/s3cret@h",
		"postgres://me:s3c ret@h/db", "postgres://me:s3c%ret@h/db", "postgres://me:1@h:s3cret/db",
		"postgres://me:1@h/db?s3cret", "postgres://me:1@h/db?password=1&s3cret=2",
		"postgres://me:1@h/db?a=s3cret=2",
		"postgres://me:1@h/db?sslmode=s3cret", "postgres://me:1@[s3cret/db", "postgres://me:1@[s3cret]/db",
		"postgres://me:1@h!s3cret/db", "postgres://h/db?user=a&user=s3cret",
		"host=h password=s3 cret", "host=h password='s3'cret", "host=h password='s3cret",
		"host=h pasword=s3cret",
		"host=h password=1 port=s3cret", "service=s3cret", "host='h s3cret'",
		"postgres://h:1,i:2,j/db?port=1,2&password=s3cret", "host=h password=1 connect_timeout=s3cret",
		"postgres://me:1%00s3cret@h/db"} {
		d, err := Parse(text)
		if err == nil {
			_, err = d.Config()
		}
		if err == nil {
			t.Errorf("%q is taken for %s", text, d)
		} else if s := err.Error(); strings.Contains(s, "s3c") || strings.Contains(s, "ret@") {
			t.Errorf("%q is repeated: %v", text, err)
		}
	}
}

// pgx takes the certificates that it can read, and fails by the others without saying which.
func TestFilesThatAreCutOffAreRefusedByName(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	own := a.Issue(servers.CertificateConfig{Name: "reader"})
	other := a.Issue(servers.CertificateConfig{Name: "another"})
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	authority, cert, key := read(a.File), read(own.CertFile), read(own.KeyFile)
	dir := t.TempDir()
	for _, test := range []struct{ authority, cert, key, says string }{
		{authority, cert, key, ""},
		{authority + cert, cert + authority, key, ""},
		{authority + cert[:len(cert)/2], cert, key, "its sslrootcert cannot be used: " + dir +
			"/ca: 2 certificates begin in it, and 1 are whole"},
		{"", cert, key, "its sslrootcert cannot be used: " + dir + "/ca: 0 certificates begin in it"},
		{authority, cert + authority[:60], key, "its sslcert cannot be used: " + dir +
			"/cert: 2 certificates begin"},
		{authority, cert, key[:len(key)-5], "its sslcert and sslkey cannot be used"},
		{authority, cert, "", "its sslcert and sslkey cannot be used"},
		{authority, cert, read(other.KeyFile), "its sslcert and sslkey cannot be used"},
	} {
		for name, text := range map[string]string{"ca": test.authority, "cert": test.cert, "key": test.key} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := parse(t, fmt.Sprintf("host=db user=u password=s3cret sslrootcert=%[1]s/ca sslcert=%[1]s/cert "+
			"sslkey=%[1]s/key", dir)).Config()
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("got %v, expected %q", err, test.says)
		}
	}
	if _, err := parse(t, "host=db user=u sslcert="+own.CertFile).Config(); err == nil ||
		!strings.Contains(err.Error(), "both or neither") {
		t.Errorf("a certificate without its key: %v", err)
	}
}

func TestAFileThatCannotBeReadIsNamed(t *testing.T) {
	_, err := parse(t, "postgres://u:s3cret@db/store?sslrootcert=/no/such/ca.pem").Config()
	if err == nil || !strings.Contains(err.Error(), "/no/such/ca.pem") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}
}

// Whoever reads the files again logs an error when it changes. Files of one folder that vanish together must
// not be named in turns.
func TestOfSeveralFilesThatCannotBeReadTheSameOneIsNamedEachTime(t *testing.T) {
	d := parse(t, "host=db user=u sslcert=/not/there.crt sslkey=/not/there.key sslrootcert=/not/there.ca")
	_, first := d.Config()
	for range 50 {
		if _, err := d.Config(); err == nil || err.Error() != first.Error() {
			t.Fatalf("%v after %v", err, first)
		}
	}
}
