package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
	"github.com/storestream/storestream/poller/postgres"
)

// dsnShapes are DSNs as people write them, rightly and wrongly; %s is the password.
var dsnShapes = []string{"postgres://u:%s@h:5432/db", "postgres://u:%s@h/db?sslmode=disable",
	"postgres://u:%s",
	"postgres://u:%s@h1:1,h2:2/db", "postgres://u@h/db?password=%s",
	"postgres://u@h/db?sslmode=require&password=%s",
	"postgres://h/db?user=u&pasword=%s", "postgresql://u:%s@[::1]/db", "postgres:/u:%s@h/db", "//u:%s@h/db",
	"postgres//u:%s@h/db", "mysql://u:%s@h/db", "u:%s@h/db", "POSTGRES://u:%s@h/db",
	"host=h user=u password=%s",
	"host=h user=u password = %s dbname=db", "host=h user=u password='%s' dbname=db", "host=h pasword=%s",
	"host=h user=u password='%s", "host=h,user=u,password=%s", "password=%s port=x",
	"host=h user=u sslpassword=%s",
	"jdbc:postgresql://h/db?user=u&password=%s", "%s", " postgres://u:%s@h/db", "postgres://u:%s@h:x/db",
	"postgres://:%s@h/db", "postgres://u:%s@/db?host=/run", "postgres://u:%s@h/db#", "postgres://u:%s@h/%%zz"}

// closedShapes are those of dsnShapes that lead to h, and lead to a port here on which nobody listens.
func closedShapes() (closed []string) {
	leads := strings.NewReplacer("@h:5432/", "@127.0.0.1:1/", "@h/", "@127.0.0.1:1/", "//h/", "//127.0.0.1:1/",
		"host=h ", "host=127.0.0.1 port=1 ")
	for _, shape := range dsnShapes {
		if there := leads.Replace(shape); there != shape {
			closed = append(closed, there)
		}
	}
	return closed
}

// urlShapes are the same for the keys that take a URL.
var urlShapes = []string{"http://u:%s@h/v1", "http://%s@h/v1", "https://u:%s@h:1/v1?a=b", "u:%s@h/v1",
	"https://h/v1?key=%s", "https://h/v1#%s"}

// a keyword=value within a password is no password: nobody can tell.
var looksLikeAKeyword = regexp.MustCompile(`[a-z]\s*=`)

// FuzzNoPartOfAPasswordIsShown plants a password in DSNs and URLs of many shapes, right and wrong, and looks
// for any four letters of it in all that is printed: mistakes, what `config show` prints, and why the
// database is not reached.
func FuzzNoPartOfAPasswordIsShown(f *testing.F) {
	closed := closedShapes()
	dsns := slices.Concat(dsnShapes, closed)
	shapes := slices.Concat(dsns, urlShapes)
	for i, password := range []string{"Zq7XwYkV", "ZqXV/YkVw", "ZqXV#YkVw", "ZqXV?YkVw", "ZqXV@YkVw",
		"ZqXV:YkVw",
		"ZqXV YkVw", "ZqXV'YkVw", `ZqXV\YkVw`, "ZqXV%YkVw", "ZqXV%2FYkVw", "ZqXV&YkVw", "ZqXV,YkVw",
		"12/ZXYV",
		"12?ZXYV", "12/ZXYV@WKLM", "[ZXYVW", "[::1]ZXYV", "*ZXYV", "ZqXV\nYkVw", "ZqXV\x00YkVw", "file:ZXYVW",
		"12,ZXYV", "@ZXYVW", "//ZXYVW", "1@ZXYV:2", "'ZXYV' WKLM", "ZqXV\" YkVw", "1/ZXYV?WKLM"} {
		for _, shape := range []int{0, i, 7 * i, len(dsns) - 1 - i%len(closed), len(dsns) - 1 - 7*i%len(closed),
			len(shapes) - 1 - i%len(urlShapes)} {
			f.Add(password, shape%len(shapes))
		}
	}
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	secret := filepath.Join(f.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s"), 0o600); err != nil {
		f.Fatal(err)
	}
	login := []string{"kafka.sasl.mechanism=OAUTHBEARER", "kafka.sasl.username=c",
		"kafka.sasl.password=file:" + secret}
	urls := []string{"store.base_url", "registry.url", "kafka.sasl.token_url"}
	given := func(keys []string, text string) (settings []string) {
		for _, key := range keys {
			settings = append(settings, key+"="+text)
		}
		if slices.Contains(keys, "kafka.sasl.token_url") {
			settings = append(settings, login...)
		}
		return settings
	}
	usual := string(example) + printedOf(Input{}) + printedOf(Input{Environ: environ(given(urls, "x")...)}) +
		printedOf(Input{Environ: environ(given(urls, "https://h/v1")...)}) +
		printedOf(Input{Environ: environ(keyDSN + "=x")}) +
		printedOf(Input{Set: []string{"postgres.dsn=postgres://u:p@h/d"}})
	refusal := printedOf(Input{Environ: environ(keyDSN + "=postgres://u:p@127.0.0.1:1/db")})
	if !strings.Contains(refusal, "connection refused") {
		f.Fatalf("it does not say why the database is not reached:\n%s", refusal)
	}
	usual += refusal
	f.Fuzz(func(t *testing.T, password string, shape int) {
		if shape < 0 || shape >= len(shapes) || looksLikeAKeyword.MatchString(password) {
			return
		}
		text, keys := strings.Replace(shapes[shape], "%s", password, 1), []string{keyDSN}
		if shape >= len(dsns) {
			keys = urls
		}
		settings := given(keys, text)
		printed := printedOf(Input{Environ: environ(settings...)}) + printedOf(Input{Set: settings})
		for i := 0; i+4 <= len(password); i++ {
			part := password[i : i+4]
			if letters.MatchString(part) && strings.Contains(printed, part) && !strings.Contains(usual,
				part) {
				t.Fatalf("%q of the password in %q is shown:\n%s", part, text, printed)
			}
		}
	})
}

var letters = regexp.MustCompile(`^[A-Za-z]{4}$`)

// printedOf is everything that is printed of a configuration.
func printedOf(in Input) string {
	c, err := Load(in)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%v %+v %v %v", c.Entries(), c, c.Exposed(), notReached(c.Postgres.DSN))
}

// notReached is why the database is not reached, by a DSN of which nothing else leads anywhere.
func notReached(text rotation.Secret) error {
	d, err := dsn.Parse(text.Get())
	if err != nil || d["host"] != "127.0.0.1" || d["port"] != "1" {
		return nil // Load has said that; or there is none
	}
	db, err := postgres.Open(text, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	_, _, err = postgres.CheckServer(context.Background(), db)
	return err
}
