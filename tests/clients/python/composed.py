"""The walk of an official SDK's client through one server that is composed of five others, each written with another SDK: their tools, prompts and
resources stand side by side, and every part is used whole. What must come is in PORTOLAN_EXPECTED; nothing is taken from what Portolan says."""

import json
import os

import anyio

from person import check, failure

EXPECTED = json.loads(os.environ["PORTOLAN_EXPECTED"])
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
# How long what was sent may take to reach a handler.
PATIENCE = 20


def text(value):
    return {"type": "text", "text": value}


def wire(model):
    """As it was on the wire: the SDKs' generations name members differently."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def same(found, wanted, sentence):
    """One line of the report: this came, and nothing else."""
    check(found == wanted, sentence, found)


class Answering:
    """Answers what is asked, and keeps it. `types` are those of the SDK's generation."""

    SAID = {"name": "Ada", "username": "Ada", "email": "ada@example.com", "color": "blue"}

    def __init__(self, types):
        self.types = types
        self.asked = []

    async def elicit(self, _context, params):
        params = wire(params)
        self.asked.append(("elicitation/create", params))
        content = {name: self.SAID.get(name, "harbours") for name in params["requestedSchema"]["properties"]}
        return self.types.ElicitResult.model_validate({"action": "accept", "content": content})

    async def sample(self, _context, params):
        self.asked.append(("sampling/createMessage", wire(params)))
        return self.types.CreateMessageResult.model_validate({"role": "assistant", "model": "m", "content": text("Hello")})

    async def roots(self, _context):
        self.asked.append(("roots/list", None))
        return self.types.ListRootsResult.model_validate({"roots": [{"uri": "file:///a"}]})


class Walk:
    """`client` is 1.x's session or 2.x's client; `address` makes what it reads resources by."""

    def __init__(self, client, answering, address):
        self.client, self.answering, self.address = client, answering, address
        self.types = answering.types

    async def whole(self):
        client = self.client
        await self.lists(client.list_tools, "tools/list", "tools", "name", EXPECTED["tools"])
        await self.lists(client.list_prompts, "prompts/list", "prompts", "name", EXPECTED["prompts"])
        await self.lists(client.list_resources, "resources/list", "resources", "uri", EXPECTED["resources"])
        templates = EXPECTED["templates"]
        await self.lists(client.list_resource_templates, "resources/templates/list", "resourceTemplates", "uriTemplate", templates)
        for part in EXPECTED["parts"]:
            await self.results(part)
            await self.notices(part["word"])
            await self.prompts(part["word"])
            await self.resources(part["word"])
            await self.questions(part)

    async def lists(self, ask, method, member, key, wanted):
        """PG-1, TL-3: all pages of a list, in their order."""
        found, pages, cursor = [], 0, None
        while len(found) <= len(wanted):
            page = wire(await ask(cursor=cursor))
            found += [one[key] for one in page[member]]
            pages, cursor = pages + 1, page.get("nextCursor")
            if cursor is None:
                break
        same(found, wanted, f"{method} gives all there is, in its order")
        same(pages, EXPECTED["pages"][method], f"{method} takes {EXPECTED['pages'][method]} pages")

    async def call(self, word, name, arguments, **more):
        return wire(await self.client.call_tool(f"{word}_{name}", arguments, **more))

    async def gives(self, word, name, arguments, content):
        result = await self.call(word, name, arguments)
        same(result["content"], content, f"{word}: {name} gives its content")
        same(result.get("isError", False), False, f"{word}: {name} is no error")
        return result

    async def results(self, part):
        """Results as the server of the part gave them, but for the names that its resources have here (X-6B, RE-12)."""
        word = part["word"]
        await self.gives(word, "test_simple_text", {}, [text("This is a simple text response for testing.")])
        link = {"type": "resource_link", "uri": f"{word}://static-text", "name": "static-text", "mimeType": "text/plain"}
        content = [text('{"city":"Kiel","degrees":21.5}'), link]
        structured = await self.gives(word, "test_structured_content", {"city": "Kiel"}, content)
        same(structured.get("structuredContent"), {"city": "Kiel", "degrees": 21.5}, f"{word}: structured content comes through")
        failed = await self.call(word, "test_error_handling", {})
        same(failed["content"], [text(part["failure"])], f"{word}: a tool that fails says why")
        same(failed["isError"], True, f"{word}: and says that it is an error")
        if not part["whole"]:
            return
        await self.gives(word, "test_image_content", {}, [{"type": "image", "data": PNG, "mimeType": "image/png"}])
        await self.gives(word, "test_audio_content", {}, [{"type": "audio", "data": WAV, "mimeType": "audio/wav"}])
        held = {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
        await self.gives(word, "test_embedded_resource", {}, [{"type": "resource", "resource": held}])

    async def notices(self, word):
        """X-76: progress under the client's own token. 2.x runs its callbacks beside the call."""
        steps = []

        async def hear(progress, total, message):
            steps.append((progress, total, message))

        result = await self.call(word, "test_tool_with_progress", {}, progress_callback=hear)
        same(result["content"], [text("Reported progress.")], f"{word}: a call with progress ends")
        with anyio.move_on_after(PATIENCE):
            while len(steps) < 3:
                await anyio.sleep(0.01)
        same(steps, [(0, 100, "begun"), (50, 100, "half"), (100, 100, "done")], f"{word}: progress is told in its order")

    async def prompts(self, word):
        name = f"{word}_test_prompt_with_arguments"
        prompt = wire(await self.client.get_prompt(name, {"arg1": "海图", "arg2": "2"}))
        message = {"role": "user", "content": text("Prompt with arguments: arg1='海图', arg2='2'")}
        same(prompt["messages"], [message], f"{word}: a prompt is filled in")
        same(prompt.get("description"), "A prompt with arguments.", f"{word}: and described")
        reference = self.types.PromptReference.model_validate({"type": "ref/prompt", "name": name})
        completed = wire(await self.client.complete(ref=reference, argument={"name": "arg1", "value": "par"}))
        values = {"values": ["paris", "park", "party"], "total": 3, "hasMore": False}
        same(completed["completion"], values, f"{word}: an argument is completed")

    async def read(self, uri):
        return wire(await self.client.read_resource(self.address(uri)))["contents"]

    async def resources(self, word):
        fixed = {"uri": f"{word}://static-text", "mimeType": "text/plain", "text": "This is the content of the static text resource."}
        same(await self.read(fixed["uri"]), [fixed], f"{word}: a text is read under the name that it has here")
        image = {"uri": f"{word}://static-binary", "mimeType": "image/png", "blob": PNG}
        same(await self.read(image["uri"]), [image], f"{word}: bytes are read")
        uri = f"{word}://template/7/data"
        [document] = await self.read(uri)
        same((document["uri"], document["mimeType"]), (uri, "application/json"), f"{word}: a template is read")
        same(json.loads(document["text"]), {"id": "7", "templateTest": True, "data": "Data for ID: 7"}, f"{word}: and filled in")
        uri = f"{word}://template/{{id}}/data"
        reference = self.types.ResourceTemplateReference.model_validate({"type": "ref/resource", "uri": uri})
        completed = wire(await self.client.complete(ref=reference, argument={"name": "id", "value": "park"}))
        same(completed["completion"], {"values": ["park"], "total": 1, "hasMore": False}, f"{word}: a template's variable is completed")
        nothing = await failure(self.client.read_resource(self.address(f"{word}://nothing")))
        check("resource not found" in nothing.lower(), f"{word}: what is not there is an error", nothing)

    async def ends(self, word, name, arguments, words, methods):
        """A tool that asks `methods` and then says `words`. Gives its result and the parameters of the first question."""
        self.answering.asked.clear()
        result = await self.call(word, name, arguments)
        asked = list(self.answering.asked)
        same(result["content"], [text(words)], f"{word}: {name} hears the answer")
        same(sorted(method for method, _ in asked), methods, f"{word}: {name} asks for that alone")
        return result, (asked[0][1] or {}) if asked else {}

    async def questions(self, part):
        """X-20, X-22, X-28, X-29: whatever the eras of the two sides, the question reaches the client's callback, and its answer whoever asked."""
        word, form, model = part["word"], ["elicitation/create"], ["sampling/createMessage"]
        _, asked = await self.ends(word, "test_input_required_result_elicitation", {}, "Hello, Ada!", form)
        same(asked.get("message"), "What is your name?", f"{word}: the form says what it wants")
        same(asked.get("requestedSchema", {}).get("required"), ["name"], f"{word}: and which field it needs")
        _, asked = await self.ends(word, "test_sampling", {"prompt": "Say hello"}, "LLM response: Hello", model)
        message = {"role": "user", "content": text("Say hello")}
        same(asked.get("messages"), [message], f"{word}: the model is asked what the tool was asked")
        same(asked.get("maxTokens"), 100, f"{word}: within its limit")
        if not part["whole"]:
            return
        await self.ends(word, "test_input_required_result_list_roots", {}, "Roots: file:///a", ["roots/list"])
        await self.ends(word, "test_input_required_result_multi_round", {}, "Ada likes blue.", form + form)
        everything = ["elicitation/create", "roots/list", "sampling/createMessage"]
        await self.ends(word, "test_input_required_result_multiple_inputs", {}, "Hello Ada, 1 roots", everything)
        self.answering.asked.clear()
        prompt = wire(await self.client.get_prompt(f"{word}_test_input_required_result_prompt"))
        same(prompt["messages"], [{"role": "user", "content": text("Context: harbours")}], f"{word}: a prompt asks too")
        same([method for method, _ in self.answering.asked], form, f"{word}: and for that alone")
        if not part["python"]:
            return
        liked, _ = await self.ends(word, "test_ask_by_schema", {}, "You like blue.", form)
        same(liked.get("structuredContent"), {"result": "You like blue."}, f"{word}: and its answer is structured")
