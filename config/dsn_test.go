package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// urlShapes are the same for the keys that take a URL.
var urlShapes = []string{"http://u:%s@h/v1", "http://%s@h/v1", "https://u:%s@h:1/v1?a=b", "u:%s@h/v1",
	"https://h/v1?key=%s", "https://h/v1#%s"}

// a keyword=value within a password is no password: nobody can tell.
var looksLikeAKeyword = regexp.MustCompile(`[a-z]\s*=`)

// FuzzNoPartOfAPasswordIsShown plants a password in DSNs and URLs of many shapes, right and wrong, and looks
// for any four letters of it in all that is printed: mistakes, and what `config show` prints.
func FuzzNoPartOfAPasswordIsShown(f *testing.F) {
	shapes := slices.Concat(dsnShapes, urlShapes)
	for i, password := range []string{"Zq7XwYkV", "ZqXV/YkVw", "ZqXV#YkVw", "ZqXV?YkVw", "ZqXV@YkVw",
		"ZqXV:YkVw",
		"ZqXV YkVw", "ZqXV'YkVw", `ZqXV\YkVw`, "ZqXV%YkVw", "ZqXV%2FYkVw", "ZqXV&YkVw", "ZqXV,YkVw",
		"12/ZXYV",
		"12?ZXYV", "12/ZXYV@WKLM", "[ZXYVW", "[::1]ZXYV", "*ZXYV", "ZqXV\nYkVw", "ZqXV\x00YkVw", "file:ZXYVW",
		"12,ZXYV", "@ZXYVW", "//ZXYVW", "1@ZXYV:2", "'ZXYV' WKLM", "ZqXV\" YkVw", "1/ZXYV?WKLM"} {
		for _, shape := range []int{0, i, 7 * i, len(shapes) - 1 - i%len(urlShapes)} {
			f.Add(password, shape%len(shapes))
		}
	}
	example, err := os.ReadFile("example.yaml")
	if err != nil {
		f.Fatal(err)
	}
	usual := string(example) + printedOf(Input{}) + printedOf(Input{Environ: environ("postgres.dsn=x",
		"store.base_url=x",
		"registry.url=x")}) + printedOf(Input{Set: []string{"postgres.dsn=postgres://u:p@h/d"}})
	f.Fuzz(func(t *testing.T, password string, shape int) {
		if shape < 0 || shape >= len(shapes) || looksLikeAKeyword.MatchString(password) {
			return
		}
		text, keys := strings.Replace(shapes[shape], "%s", password, 1), []string{keyDSN}
		if shape >= len(dsnShapes) {
			keys = []string{"store.base_url", "registry.url"}
		}
		var settings []string
		for _, key := range keys {
			settings = append(settings, key+"="+text)
		}
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
	return fmt.Sprintf("%v %+v %v", c.Entries(), c, c.Plaintext())
}
