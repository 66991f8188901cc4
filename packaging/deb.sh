#!/usr/bin/env bash
# Makes a Debian package of what `make install` installs: deb.sh STAGED INTO
# STAGED is where `make install PREFIX=/usr DESTDIR=STAGED` has put it. DEBFULLNAME and DEBEMAIL say who
# answers for the package.
set -euo pipefail
cd "$(dirname "$0")/.."
staged=$(realpath "$1")
into=$2
name=shortlane
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
maintainer="${DEBFULLNAME:-The Shortlane authors} <${DEBEMAIL:-authors@shortlane.example}>"
# The same sources give the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || date +%s)}
export SOURCE_DATE_EPOCH
date=$(date --utc --rfc-email --date "@$SOURCE_DATE_EPOCH")

# A package that was half made has another name, and does not stay.
mkdir -p "$into"
package=$into/${name}_${version}_$architecture.deb
rm -f "$package"
work=$(mktemp -d "$into/deb.XXXXXX")
leave() {
	local status=$?
	rm -rf "$work"
	[ "$status" -eq 0 ] || echo "deb.sh: no package was made; $(df -h --output=avail "$into" | tail -n 1) are left in $into" >&2
}
trap leave EXIT
root=$work/$name
cp -a "$staged" "$root"
documents=$root/usr/share/doc/$name
strip --remove-section=.comment --remove-section=.note "$root/usr/bin/shortlane"
# Debian has these of its own packages there.
install -d "$root/usr/share/zsh/vendor-completions"
mv "$root/usr/share/zsh/site-functions/_shortlane" "$root/usr/share/zsh/vendor-completions/"
rm -r "$root/usr/share/zsh/site-functions"
gzip --best --no-name "$root"/usr/share/man/man1/*.1
# The configuration is a copy of the example with every line a comment: nothing is attached by it.
install -d "$root/etc" "$documents/examples" "$root/DEBIAN"
sed 's/^\([^#]\)/# \1/' packaging/shortlane.toml > "$root/etc/shortlane.toml"
mv "$documents/shortlane.toml" "$documents/examples/"
echo /etc/shortlane.toml > "$root/DEBIAN/conffiles"

cat > "$documents/copyright" << END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Shortlane
Source: the directory that this package was made from
Comment: libelf of elfutils (LGPL-3+ or GPL-2+) and zlib (Zlib) are linked in, and so are the
 programs for the inside of the kernel.

Files: *
Copyright: 2026 The Shortlane authors
License: MIT or Apache-2.0

Files: crates/cli/vendor/uplot/*
Copyright: 2022 Leon Sorokin
License: MIT

Files: crates/engine/bpf/*
Copyright: 2026 The Shortlane authors
License: GPL-2

License: MIT
$(sed 's/^$/./; s/^/ /' LICENSE-MIT)

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

License: GPL-2
 On Debian systems the text is in /usr/share/common-licenses/GPL-2.
END
gzip --best --no-name > "$documents/changelog.gz" << END
$name ($version) unstable; urgency=medium

  * Release $version: see CHANGELOG.md of the sources.

 -- $maintainer  $date
END

# What the program needs of the system's libraries.
mkdir -p "$work/debian"
printf 'Source: %s\n\nPackage: %s\nArchitecture: any\n' "$name" "$name" > "$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$name/usr/bin/shortlane" | sed 's/^shlibs:Depends=//')
cat > "$root/DEBIAN/control" << END
Package: $name
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: $depends
Recommends: iproute2
Section: net
Priority: optional
Description: short lane for short and interactive flows through a busy link
 Queue disciplines that put short flows ahead of long ones (EFD, LAS, Run2C,
 SB-SH and others, beside FIFO, DRR, CoDel and FQ-CoDel) for a real link,
 inside the kernel or by a process that fails open, and a lab, a simulator
 and replay of captures that show who gains by them and who pays.
END

cat > "$root/DEBIAN/postinst" << 'END'
#!/bin/sh
set -e
if [ "$1" = configure ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
	# Those that run go on with the new program; the queue is theirs until then.
	if [ -n "$2" ]; then
		systemctl try-restart 'shortlane@*.service' shortlane-metrics.service || true
	fi
fi
END
cat > "$root/DEBIAN/prerm" << 'END'
#!/bin/sh
set -e
# A device is left as it was, whatever attached it.
if [ "$1" = remove ]; then
	if [ -d /run/systemd/system ]; then
		systemctl stop 'shortlane@*.service' shortlane-metrics.service || true
	fi
	shortlane show --json 2> /dev/null | sed -n 's/^ *"device": "\(.*\)",*$/\1/p' | sort -u |
		while read -r device; do shortlane detach "$device" || true; done
fi
END
cat > "$root/DEBIAN/postrm" << 'END'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -f /etc/systemd/system/multi-user.target.wants/shortlane@*.service \
		/etc/systemd/system/multi-user.target.wants/shortlane-metrics.service
fi
END
chmod 755 "$root"/DEBIAN/p*
find "$root" -type d -exec chmod 755 {} +
(cd "$root" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz --build "$root" "$work/package" > /dev/null
mv "$work/package" "$package"
echo "$package"
