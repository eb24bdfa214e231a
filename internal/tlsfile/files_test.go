package tlsfile_test

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/storestream/storestream/internal/standins/servers"
	"github.com/storestream/storestream/internal/tlsfile"
)

// Somebody copies a file of two authorities, or of a certificate and its chain, and has not come to its end.
func TestAFileOfCertificatesThatIsCutOffIsRefused(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	ours, theirs := servers.AuthorityForTest(t, dir), servers.AuthorityForTest(t, elsewhere)
	client := ours.Issue(servers.CertificateConfig{Name: "client"})
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	second := read(theirs.File)
	for name, first := range map[string]string{"ca_file": ours.File, "cert_file": client.CertFile} {
		path := filepath.Join(dir, name)
		files := tlsfile.Files{CAFile: path}
		if name == "cert_file" {
			files = tlsfile.Files{CertFile: path, KeyFile: client.KeyFile}
		}
		for _, cut := range []struct {
			at    int
			whole bool
		}{{0, true}, {60, false}, {len(second) / 2, false}, {len(second) - 5, false}, {len(second), true}} {
			if err := os.WriteFile(path, []byte(read(first)+second[:cut.at]), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := files.Open(nil)
			if whole := err == nil; whole != cut.whole {
				t.Errorf("%s with %d of %d bytes of its second certificate: %v", name, cut.at, len(second), err)
			}
			if err != nil && !strings.Contains(err.Error(), "2 certificates begin in it, and 1 are whole") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestTheSystemsAuthoritiesMayCountBesideThoseOfAFile(t *testing.T) {
	a := servers.AuthorityForTest(t, t.TempDir())
	want, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	want.AddCert(a.Cert)
	client, err := tlsfile.Files{CAFile: a.File, AlsoSystem: true}.Open(nil)
	if err != nil || !client.Config().RootCAs.Equal(want) {
		t.Errorf("%v, expected the system's authorities and one more", err)
	}
}
