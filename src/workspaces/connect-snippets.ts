import { singleQuoted } from '../base/shell-word.ts'
import type { Snippet } from '../contract/connect.ts'

/** Addresses and names to insert into the snippets. */
export interface SnippetTarget {
  /** Address of the search route. */
  readonly searchUrl: string
  readonly mcpUrl: string
  readonly apiKeyEnvVar: string
}

/**
 * Returns sample code for each agent framework, in the order in which they are listed.
 *
 * @see docs/connecting.md
 */
export function buildSnippets(target: SnippetTarget): Snippet[] {
  return [
    {
      id: 'langgraph',
      displayName: 'LangGraph',
      tagline: 'A graph agent that searches before it answers',
      ...restSnippet,
      install: 'pip install langgraph "langchain[openai]"',
      code: `from langchain.agents import create_agent
${searchFunction(target)}

agent = create_agent("openai:gpt-4o-mini", tools=[search_knowledge])
answer = agent.invoke({"messages": [{"role": "user", "content": "What do you know?"}]})
print(answer["messages"][-1].content)
`,
      docsUrl: 'https://docs.langchain.com/oss/python/langgraph/overview',
    },
    {
      id: 'crewai',
      displayName: 'CrewAI',
      tagline: 'A crew with a researcher that searches the workspace',
      ...restSnippet,
      install: 'pip install crewai',
      code: `from crewai import Agent, Crew, Task
from crewai.tools import tool
${searchFunction(target, '@tool("search_knowledge")')}

researcher = Agent(
    role="Researcher",
    goal="Answer from the knowledge base and name the source",
    backstory="You look things up before you speak.",
    tools=[search_knowledge],
)
task = Task(description="What do you know?", expected_output="A short answer", agent=researcher)
print(Crew(agents=[researcher], tasks=[task]).kickoff())
`,
      docsUrl: 'https://docs.crewai.com/',
    },
    {
      id: 'google-adk',
      displayName: 'Google ADK',
      tagline: 'An agent for "adk run" and "adk web"',
      ...restSnippet,
      install: 'pip install google-adk',
      code: `from google.adk.agents import Agent
${searchFunction(target)}

root_agent = Agent(
    name="knowledge_agent",
    model="gemini-2.5-flash",
    instruction="Search the knowledge base before you answer, and name the source.",
    tools=[search_knowledge],
)
`,
      docsUrl: 'https://google.github.io/adk-docs/',
      notes: 'Save it as agent.py in a new folder, and start it with "adk run FOLDER".',
    },
    {
      id: 'microsoft-agent-framework',
      displayName: 'Microsoft Agent Framework',
      tagline: 'A chat agent with search as a tool',
      ...restSnippet,
      install: 'pip install agent-framework',
      code: `import asyncio
from agent_framework import Agent
from agent_framework.openai import OpenAIChatClient
${searchFunction(target)}

agent = Agent(
    client=OpenAIChatClient(),
    instructions="Search the knowledge base before you answer, and name the source.",
    tools=[search_knowledge],
)
print(asyncio.run(agent.run("What do you know?")))
`,
      docsUrl: 'https://learn.microsoft.com/agent-framework/',
    },
    {
      id: 'watsonx',
      displayName: 'watsonx Orchestrate',
      tagline: 'A Python tool for Orchestrate agents',
      ...restSnippet,
      install: 'pip install ibm-watsonx-orchestrate',
      code: `from ibm_watsonx_orchestrate.agent_builder.tools import tool
${searchFunction(target, '@tool()')}
`,
      docsUrl: 'https://developer.watson-orchestrate.ibm.com/',
      notes: `Import it with "orchestrate tools import -k python -f FILE". The environment that runs it must set ${target.apiKeyEnvVar} and be able to reach this address.`,
    },
    {
      id: 'mcp-raw',
      displayName: 'MCP',
      tagline: 'List the tools of the workspace with any MCP client',
      language: 'bash',
      transport: 'mcp',
      install: null,
      code: `curl --fail-with-body ${singleQuoted(target.mcpUrl)} \\
  --header "Authorization: Bearer $${target.apiKeyEnvVar}" \\
  --header 'Content-Type: application/json' \\
  --header 'Accept: application/json, text/event-stream' \\
  --data '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
`,
      requiresMcp: true,
      docsUrl: 'https://modelcontextprotocol.io/',
      notes: 'Works only if mcpEnabled is true.',
    },
  ]
}

const restSnippet = { language: 'python', transport: 'rest', requiresMcp: false, notes: null } as const

/** Returns a function that uses only Python's standard library. The frameworks read its docstring. */
function searchFunction({ searchUrl, apiKeyEnvVar }: SnippetTarget, decorator?: string): string {
  return `import json
import os
import urllib.request

${decorator === undefined ? '' : `${decorator}\n`}def search_knowledge(question: str) -> str:
    """Find passages that answer a question.

    Args:
        question (str): The question, in plain words.

    Returns:
        str: The passages as JSON, best match first.
    """
    request = urllib.request.Request(
        ${JSON.stringify(searchUrl)},
        data=json.dumps({"text": question, "topK": 5}).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["${apiKeyEnvVar}"],
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request) as response:
        return response.read().decode()`
}
