import { globSync, readFileSync } from 'node:fs'
import ts from 'typescript'

const parse = (path: string): ts.SourceFile =>
  ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest, true)

/** How many lines of a folder's TypeScript files hold code: not only blanks or comments. */
export function linesIn(folder: string): number {
  return globSync(`${folder}/**/*.ts`).reduce((sum, path) => sum + codeLines(parse(path)).size, 0)
}

/** The lines of code of each function that has a name or a block, in a folder's TypeScript files. */
export function functionSizes(folder: string): number[] {
  return globSync(`${folder}/**/*.ts`).flatMap((path) => {
    const file = parse(path)
    const code = codeLines(file)
    const sizes: number[] = []
    const visit = (node: ts.Node): void => {
      if (ts.isFunctionLike(node) && 'body' in node && node.body && (hasName(node) || ts.isBlock(node.body)))
        sizes.push(countBetween(code, lineOf(file, node.getStart(file)), lineOf(file, node.end)))
      ts.forEachChild(node, visit)
    }
    visit(file)
    return sizes
  })
}

/** The value that `share` of the sorted numbers do not exceed. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.ceil(sorted.length * share) - 1] ?? 0
}

function hasName(node: ts.SignatureDeclaration): boolean {
  return node.name !== undefined || ts.isVariableDeclaration(node.parent) || ts.isPropertyAssignment(node.parent)
}

/** The numbers of the lines on which a token begins or ends; a token of several lines has all of them. */
function codeLines(file: ts.SourceFile): ReadonlySet<number> {
  const lines = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (ts.isJSDoc(node)) return
    const children = node.getChildren(file)
    if (children.length > 0) children.forEach(visit)
    else if (node.end > node.getStart(file)) {
      for (let line = lineOf(file, node.getStart(file)); line <= lineOf(file, node.end); line += 1) lines.add(line)
    }
  }
  visit(file)
  return lines
}

function lineOf(file: ts.SourceFile, position: number): number {
  return file.getLineAndCharacterOfPosition(position).line
}

function countBetween(lines: ReadonlySet<number>, first: number, last: number): number {
  let count = 0
  for (let line = first; line <= last; line += 1) if (lines.has(line)) count += 1
  return count
}
