// A separate file, because <linux/tcp.h>, which declares the counter, conflicts with <netinet/tcp.h>.
#include "http_server.h"

#ifdef __linux__
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int64_t countersign_taken_bytes(int socket) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received ||
        ioctl(socket, FIONREAD, &unread) != 0)
        return -1;
    return (int64_t)info.tcpi_bytes_received - unread;
}
#else
int64_t countersign_taken_bytes(int socket) {
    (void)socket;
    return -1;
}
#endif
