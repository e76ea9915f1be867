import type { Extras } from './markdown.ts'
import { exampleOf, SAMPLE_LANGUAGES, type SampleLanguage } from './samples.ts'

const ABOUT =
  'Each call below has samples, made of its examples. They need this before them, and `PAYGATE_URL`, `PAYGATE_API_KEY` and `PAYGATE_API_SECRET` in the environment:'

/** The samples of the page. One language at a time is open, because its `details` share a name. */
export const samples: Extras = {
  before: ['### Samples', ABOUT, blocksOf('setup', ({ setup }) => setup)].join('\n\n'),
  after: (call, operation) => {
    const example = exampleOf(call, operation)
    return blocksOf(operation.operationId, ({ sample }) => sample(example))
  },
}

/** After an empty line Markdown stays Markdown inside an element of HTML. */
function blocksOf(group: string, codeOf: (language: SampleLanguage) => string): string {
  const blocks = SAMPLE_LANGUAGES.map((language) =>
    [
      `<details name="sample-${group}"><summary>${language.name}</summary>`,
      `\`\`\`${language.fence}\n${codeOf(language)}\n\`\`\``,
      '</details>',
    ].join('\n\n'),
  )
  return `<div class="samples">\n\n${blocks.join('\n')}\n\n</div>`
}
