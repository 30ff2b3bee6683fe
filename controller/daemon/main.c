/* main.c - picks the subcommand. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"run", command_run, "the controller: watches the cluster and admits gangs"},
    {"plan", command_plan,
     "what would be decided now, from manifests or a cluster; changes nothing"},
    {"explain", command_explain, "why one Job waits, what would start it, how far it is"},
    {"simulate", command_simulate,
     "manifests, a load or a trace in virtual time; no cluster is needed"},
    {"replay", command_replay, "plays a recorded journal again and compares the decisions"},
};

static void print_usage(FILE *out)
{
    fprintf(out,
            "tallyman %s - gang admission for Kubernetes\n\nusage: tallyman COMMAND [options]\n\n",
            tallyman_version());
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(out, "  %-10s %s\n\nEach command explains itself with --help.\n", "version",
            "prints the version");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    const char *name = argv[1];
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        if (argc > 2) {
            fprintf(stderr, "tallyman version: \"%s\" is too much; it takes nothing\n", argv[2]);
            return 2;
        }
        printf("tallyman %s\n", tallyman_version());
        return 0;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            /* What getopt puts in front of its own sentences. */
            static char full_name[32];
            snprintf(full_name, sizeof(full_name), "tallyman %s", commands[i].name);
            argv[1] = full_name;
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "tallyman: there is no command \"%s\"\n\n", name);
    print_usage(stderr);
    return 2;
}
