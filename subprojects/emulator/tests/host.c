/*
 * Opens the plug-in named by the first argument and prints its sum; exits with 0 if that is the
 * second argument.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int (*sum_on_device)(void);
static int sum;

static void *call(void *unused)
{
    sum = sum_on_device();
    return unused;
}

int main(int count, char **arguments)
{
    if (count < 3)
        return 2;
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        printf("%s\n", dlerror());
        return 3;
    }
    *(void **)&sum_on_device = dlsym(plugin, "sum_on_device");
    call(NULL);
    printf("the sum is %d\n", sum);
    int expected = atoi(arguments[2]), first = sum;
    pthread_t thread; /* another host thread may call the plug-in later */
    pthread_create(&thread, NULL, call, NULL);
    pthread_join(thread, NULL);
    return first != expected || sum != expected;
}
