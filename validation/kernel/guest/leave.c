/* Ends the virtual machine with the one status that a guest that came to its end has.
 *
 * A write to QEMU's isa-debug-exit device ends QEMU with status 2 x value + 1: here 85. A guest that
 * panics, reboots or powers off ends QEMU with status 0.
 */
#include <stdio.h>
#include <sys/io.h>

#define PORT 0xf4
#define VALUE 42

int main(void)
{
	if (ioperm(PORT, 1, 1) != 0) {
		perror("leave: ioperm");
		return 1;
	}
	outb(VALUE, PORT);
	return 1;
}
