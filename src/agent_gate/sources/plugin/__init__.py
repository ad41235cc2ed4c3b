"""Python plugins as sources."""


class PluginKind:
    name = "plugin"

    def make(self, settings, toolbox):
        return []


SOURCE = PluginKind()
