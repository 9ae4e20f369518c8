/*
 * Dumps typed data with libbpf, for comparison with ours.
 *
 *	dump BTF-FILE < requests > replies
 *
 * A request is a struct request, the indent string and the data; a reply is a
 * struct reply and the text. With repeat set, the value is dumped so many times
 * and the text is the time of one dump in nanoseconds.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COMPACT = 1, SKIP_NAMES = 2, EMIT_ZEROES = 4 };

struct request {
	__u32 type, options, indent_level, repeat, indent_len, data_len;
};

struct reply {
	__s32 result;
	__u32 len;
};

/* libbpf reads a whole enum or int for a bitfield at the end of the data. */
enum { BEYOND = 16 };

static char *text;
static size_t len, room;

static void need(size_t n)
{
	if (room - len >= n)
		return;
	room = 2 * room + n;
	text = realloc(text, room);
	if (!text)
		abort();
}

static void print(void *ctx, const char *fmt, va_list args)
{
	va_list again;
	int n;

	va_copy(again, args);
	n = vsnprintf(text + len, room - len, fmt, args);
	if (n >= (int)(room - len)) {
		need(n + 1);
		vsnprintf(text + len, room - len, fmt, again);
	}
	va_end(again);
	len += n;
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return 0;
}

static int dump(struct btf_dump *d, const struct request *r, const char *indent, const void *data)
{
	LIBBPF_OPTS(btf_dump_type_data_opts, opts,
		.indent_str = r->indent_len ? indent : NULL,
		.indent_level = r->indent_level,
		.compact = r->options & COMPACT,
		.skip_names = r->options & SKIP_NAMES,
		.emit_zeroes = r->options & EMIT_ZEROES,
	);

	len = 0;
	return btf_dump__dump_type_data(d, r->type, data, r->data_len, &opts);
}

/* measure replaces the text by the time. */
static void measure(struct btf_dump *d, const struct request *r, const char *indent, const void *data)
{
	struct timespec from, to;
	__u32 i;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
	for (i = 0; i < r->repeat; i++)
		dump(d, r, indent, data);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);

	len = snprintf(text, room, "%.1f",
		((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / r->repeat);
}

static int answer(struct btf_dump *d, const struct request *r)
{
	char *indent = calloc(1, r->indent_len + 1);
	char *data = calloc(1, r->data_len + BEYOND); /* aligned for every type */
	struct reply reply;
	int ok = 0;

	if (indent && data &&
	    fread(indent, 1, r->indent_len, stdin) == r->indent_len &&
	    fread(data, 1, r->data_len, stdin) == r->data_len) {
		reply.result = dump(d, r, indent, data);
		if (r->repeat)
			measure(d, r, indent, data);
		reply.len = len;
		ok = fwrite(&reply, sizeof(reply), 1, stdout) == 1 &&
			fwrite(text, 1, len, stdout) == len &&
			fflush(stdout) == 0;
	}
	free(indent);
	free(data);
	return ok;
}

int main(int argc, char **argv)
{
	struct request r;
	struct btf_dump *d;
	struct btf *btf;

	libbpf_set_print(quiet);
	btf = argc == 2 ? btf__parse(argv[1], NULL) : NULL;
	d = btf ? btf_dump__new(btf, print, NULL, NULL) : NULL;
	if (libbpf_get_error(d) || !d) {
		fprintf(stderr, "usage: dump BTF-FILE, which libbpf %s can read\n", libbpf_version_string());
		return 1;
	}
	need(1 << 20);
	printf("%s\n", libbpf_version_string());
	fflush(stdout);
	while (fread(&r, sizeof(r), 1, stdin) == 1)
		if (!answer(d, &r))
			return 1;
	return 0;
}
