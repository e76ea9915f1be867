import { join } from 'node:path'
import ts from 'typescript'

const LIBRARIES = join(import.meta.dirname, '../../node_modules/typescript/lib/')
const libraries = new Map<string, ts.SourceFile | undefined>()

/**
 * What the TypeScript compiler finds wrong in files of a project, and in the types of the packages that they use, but for those in
 * `@types`, which are not ours and take longest.
 *
 * @param options - as in a `tsconfig.json`
 */
export function typeErrors(
  folder: string,
  files: readonly string[],
  options: Readonly<Record<string, unknown>>,
): string {
  const { options: compilerOptions, errors } = ts.convertCompilerOptionsFromJson(options, folder)
  const host = { ...ts.createCompilerHost(compilerOptions), getCurrentDirectory: () => folder }
  const parse = host.getSourceFile.bind(host)
  // TypeScript's own libraries are the same in each project, and are parsed once.
  host.getSourceFile = (name, ...rest) => {
    if (!name.startsWith(LIBRARIES)) return parse(name, ...rest)
    if (!libraries.has(name)) libraries.set(name, parse(name, ...rest))
    return libraries.get(name)
  }
  const program = ts.createProgram(
    files.map((file) => join(folder, file)),
    compilerOptions,
    host,
  )
  const checked = program
    .getSourceFiles()
    .filter(({ fileName }) => !/\/node_modules\/(@types|undici-types)\//.test(fileName))
  const found = [
    ...errors,
    ...program.getOptionsDiagnostics(),
    ...program.getGlobalDiagnostics(),
    ...program.getSyntacticDiagnostics(),
    ...checked.flatMap((file) => program.getSemanticDiagnostics(file)),
  ]
  return ts.formatDiagnostics(found, host)
}
