/* The client of client.py as a program of its own, which starts in half a millisecond.
 *
 * `native.py` compiles it where a C compiler is installed. It gives an answer that needs no
 * compiler (answers.py), or hands the command line to a server that is there. Whatever else may be
 * needed (starting a server, doing the work here, saying what is wrong) is left to client.py, which
 * it becomes.
 *
 * Set by native.py: TILEC_PYTHON, TILEC_CLIENT, TILEC_ENTRY, TILEC_IDENTITY, TILEC_PROTOCOL.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

extern char **environ;

/* Found by `activation.is_ours`. */
__attribute__((used)) static const char mark[] = TILEC_MARK;

static const char magic[] = "TILEC";
enum { MAGIC = 5, HEAD = MAGIC + 5, REPLY = MAGIC + 6, STREAMS = 4 };
enum { DONE = 0, AWAY = 1, DIED = 2 };

/* Become client.py, which does everything. */
static void become_python(int count, char **arguments) {
    char **all = calloc((size_t)count + 7, sizeof *all);
    int n = 0;
    if (all == NULL) _exit(1);
    all[n++] = TILEC_PYTHON;
    all[n++] = "-S";
    all[n++] = "-E";
    all[n++] = TILEC_CLIENT;
    all[n++] = TILEC_ENTRY;
    all[n++] = count > 0 ? arguments[0] : TILEC_ENTRY;
    for (int i = 1; i < count; i++) all[n++] = arguments[i];
    execv(TILEC_PYTHON, all);
    fprintf(stderr, "error: cannot run %s: %s\n", TILEC_PYTHON, strerror(errno));
    _exit(127);
}

/* Whether TILEC_SERVER lets a server be used; what else it may say, client.py knows. */
static int server_wanted(void) {
    const char *mode = getenv("TILEC_SERVER");
    static const char *const yes[] = {"", "on", "1", "true", "wait", "running"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (mode == NULL || strcasecmp(mode, yes[i]) == 0) return 1;
    return 0;
}

/* What tells installations apart: what native.py says, and the variables that Python reads. */
static char *identity(void) {
    const char *path = getenv("PYTHONPATH");
    char *text = NULL;
    if (asprintf(&text, "%s\n%s", TILEC_IDENTITY, path == NULL ? "" : path) < 0) return NULL;
    return text;
}

static uint64_t fnv(const char *text) {
    uint64_t number = 0xCBF29CE484222325u; /* FNV-1a */
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        number = (number ^ *c) * 0x100000001B3u;
    return number;
}

/* The path of the socket, as `client.address` makes it; 0 if there can be none. */
static int socket_path(const char *who, char *out, size_t size) {
    const char *folder = getenv("TILEC_SERVER_DIR");
    char made[sizeof(((struct sockaddr_un *)0)->sun_path)];
    struct stat found;
    if (folder == NULL || *folder == '\0') {
        const char *base = getenv("XDG_RUNTIME_DIR");
        if (base == NULL || *base != '/' || stat(base, &found) != 0 || !S_ISDIR(found.st_mode))
            base = "/tmp";
        if (snprintf(made, sizeof made, "%s/tilec-%u", base, getuid()) >= (int)sizeof made) return 0;
        folder = made;
    }
    if (lstat(folder, &found) != 0 || !S_ISDIR(found.st_mode)) return 0;
    if (found.st_uid != getuid() || (found.st_mode & 077) != 0) return 0;
    int length = snprintf(out, size, "%s/%016llx.socket", folder, (unsigned long long)fnv(who));
    return length > 0 && (size_t)length < size;
}

/* A connection to a server of this user, or -1. */
static int connected(const char *who) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!socket_path(who, address.sun_path, sizeof address.sun_path)) return -1;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid())
        return fd;
    close(fd);
    return -1;
}

struct message {
    char *bytes;
    size_t length;
    FILE *stream;
};

static void field(struct message *m, const char *text) {
    if (ftell(m->stream) > HEAD) fputc(0, m->stream);
    fputs(text, m->stream);
}

/* The request, as `client.request` makes it; 0 when there is no memory for it. */
static int request(struct message *m, const char *who, int count, char **arguments) {
    m->stream = open_memstream(&m->bytes, &m->length);
    if (m->stream == NULL) return 0;
    mode_t mask = umask(077);
    umask(mask);
    char number[32];
    fwrite(magic, 1, MAGIC, m->stream);
    for (int i = MAGIC; i < HEAD; i++) fputc(0, m->stream);
    field(m, who);
    field(m, TILEC_ENTRY);
    field(m, count > 0 ? arguments[0] : TILEC_ENTRY);
    snprintf(number, sizeof number, "%u", (unsigned)mask);
    field(m, number);
    snprintf(number, sizeof number, "%d", count > 0 ? count - 1 : 0);
    field(m, number);
    for (int i = 1; i < count; i++) field(m, arguments[i]);
    for (char **variable = environ; *variable != NULL; variable++)
        if (strchr(*variable, '=') != NULL) field(m, *variable);
    if (fclose(m->stream) != 0) return 0;
    m->bytes[MAGIC] = TILEC_PROTOCOL;
    size_t body = m->length - HEAD;
    for (int i = 0; i < 4; i++) m->bytes[MAGIC + 1 + i] = (char)(body >> (8 * i));
    return body >> 32 == 0;
}

/* Send the message, and with its first part the standard streams and the working directory. */
static int send_all(int fd, const struct message *m, const int *streams) {
    union {
        char space[CMSG_SPACE(sizeof(int) * STREAMS)];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {m->bytes, m->length};
    struct msghdr head = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space,
                          .msg_controllen = sizeof control.space};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&head);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * STREAMS);
    memcpy(CMSG_DATA(rights), streams, sizeof(int) * STREAMS);
    ssize_t sent = sendmsg(fd, &head, MSG_NOSIGNAL);
    if (sent < 0) return 0;
    for (size_t at = (size_t)sent; at < m->length; at += (size_t)sent) {
        sent = send(fd, m->bytes + at, m->length - at, MSG_NOSIGNAL);
        if (sent < 0) return 0;
    }
    return 1;
}

/* Read the reply; 0 if none comes, or it is of another version, or says "not here". */
static int answered(int fd, unsigned char *reply) {
    for (size_t have = 0; have < REPLY;) {
        ssize_t got = recv(fd, reply + have, REPLY - have, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        have += (size_t)got;
    }
    return memcmp(reply, magic, MAGIC) == 0 && reply[MAGIC] == TILEC_PROTOCOL &&
           reply[MAGIC + 1] != AWAY;
}

static void hold_standard_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0) _exit(1);
}

/* --- answers that need no compiler (answers.py) ------------------------------------------------ */

/* The file of answers, opened if nobody else can have written it; NULL if there is none. */
static FILE *answers(const char *who) {
    const char *chosen = getenv("TILEC_CACHE_DIR"), *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *key = NULL, *path = NULL;
    struct stat found;
    int length = -1;
    if (asprintf(&key, "%s\n%s", who, TILEC_ENTRY) < 0) return NULL;
    unsigned long long number = fnv(key);
    static const char file[] = "snapshots/answers-";
    if (chosen != NULL && *chosen != '\0')
        length = asprintf(&path, "%s/%s%016llx", chosen, file, number);
    else if (base != NULL && *base == '/')
        length = asprintf(&path, "%s/tilec/%s%016llx", base, file, number);
    else if (home != NULL && *home == '/')
        length = asprintf(&path, "%s/.cache/tilec/%s%016llx", home, file, number);
    FILE *stream = length < 0 ? NULL : fopen(path, "re");
    if (stream == NULL) return NULL;
    if (fstat(fileno(stream), &found) == 0 && found.st_uid == getuid() && !(found.st_mode & 022))
        return stream;
    fclose(stream);
    return NULL;
}

/* Whether a variable is as "NAME=VALUE", or unset as "NAME" says. */
static int variable_holds(char *text) {
    char *value = strchr(text, '=');
    if (value != NULL) *value++ = '\0';
    const char *now = getenv(text);
    return value == NULL ? now == NULL : now != NULL && strcmp(now, value) == 0;
}

/* Whether a file is as "TIME SIZE PATH" says; -1 and -1 for none. */
static int file_holds(const char *text) {
    long long when, size;
    int at = 0;
    struct stat found;
    if (sscanf(text, "%lld %lld %n", &when, &size, &at) != 2 || at == 0) return 0;
    if (stat(text + at, &found) != 0) return when == -1;
    return found.st_mtim.tv_sec * 1000000000LL + found.st_mtim.tv_nsec == when &&
           (long long)found.st_size == size;
}

/* Print the answer to `option`, if it is known and everything is as it was; whether it was. */
static int answered_here(const char *who, const char *option) {
    FILE *stream = answers(who);
    char *line = NULL;
    size_t room = 0;
    int done = 0, first = 1;
    for (ssize_t n; !done && stream != NULL && (n = getline(&line, &room, stream)) > 0; first = 0) {
        if (line[n - 1] != '\n') break;
        line[n - 1] = '\0';
        char name[32];
        long size;
        if (first) {
            if (strcmp(line, "TILEC-ANSWERS 1") != 0) break;
        } else if (strncmp(line, "variable ", 9) == 0) {
            if (!variable_holds(line + 9)) break;
        } else if (strncmp(line, "file ", 5) == 0) {
            if (!file_holds(line + 5)) break;
        } else if (sscanf(line, "answer %31s %ld", name, &size) == 2 && size >= 0) {
            char *text = malloc((size_t)size + 1);
            if (text == NULL || fread(text, 1, (size_t)size, stream) != (size_t)size) break;
            if (strcmp(name, option) == 0) {
                if (fwrite(text, 1, (size_t)size, stdout) != (size_t)size || fflush(stdout) != 0)
                    _exit(2);
                done = 1;
            }
            free(text);
        } else {
            break;
        }
    }
    if (stream != NULL) fclose(stream);
    free(line);
    return done;
}

int main(int count, char **arguments) {
    struct message message = {0};
    unsigned char reply[REPLY];
    char *who = identity();
    hold_standard_streams();
    if (who != NULL && count == 2 && answered_here(who, arguments[1])) return 0;
    int fd = who != NULL && server_wanted() ? connected(who) : -1;
    if (fd < 0) become_python(count, arguments);
    int streams[STREAMS] = {0, 1, 2, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (streams[3] < 0 || !request(&message, who, count, arguments) ||
        !send_all(fd, &message, streams) || !answered(fd, reply))
        become_python(count, arguments);
    int code = 0;
    for (int i = 0; i < 4; i++) code |= (int)((unsigned)reply[MAGIC + 2 + i] << (8 * i));
    if (reply[MAGIC + 1] != DIED) return code;
    fprintf(stderr, "error: internal error: the compiler was ended by signal %d\n", code);
    return 5;
}
