import { compile, type JSONSchema } from 'json-schema-to-typescript'
import type { OpenApi } from '#reference/openapi.ts'

/** The types of the client: every named schema of the API, and the union of its events. */
export async function clientTypes({ components, webhooks }: OpenApi): Promise<string> {
  const definitions = JSON.parse(
    JSON.stringify(components.schemas).replaceAll('"#/components/schemas/', '"#/definitions/'),
  ) as Record<string, JSONSchema>
  const types = await compile({ title: 'Schemas', definitions, additionalProperties: false }, 'Schemas', {
    additionalProperties: false,
    unreachableDefinitions: true,
    ignoreMinAndMaxItems: true,
    bannerComment: '// Written by `npm run docs` from the schemas that serve the API.',
    style: { semi: false, singleQuote: true, printWidth: 120, trailingComma: 'all' },
  })
  const events = Object.values(webhooks).map(({ post }) => `${post.operationId.replace(/^on/, '')}Event`)
  return `${withoutRoot(types)}
/** The body of a webhook. There may be further types one day: ignore those that you do not know. */
export type WebhookBody =
${events.map((name) => `  | ${name}`).join('\n')}
`
}

/** The compiler wants one schema that holds all the others, and says so at each of them. */
function withoutRoot(types: string): string {
  return types
    .replace(/export interface Schemas \{\}\n/, '')
    .replace(
      /( \*\n)? \* This interface was referenced by `Schemas`'s JSON-Schema\n \* via the `definition` ".*?"\.\n/g,
      '',
    )
    .replace(/\/\*\*\n \*\/\n/g, '')
    .replaceAll(': {}\n', ': Record<string, never>\n')
}
