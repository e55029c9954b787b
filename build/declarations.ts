/** Builds self-contained type declarations of a package. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { repositoryRoot } from './repository-root.ts'

const specifier = /(?<=\bfrom ['"]|\bimport\(?\s*['"])[^'"]+(?=['"])/g

/**
 * Writes the declarations of `doors` and of everything they import, one file per source file; imports of other
 * packages of this repository become relative paths.
 * @param doors paths of sources such as `provider/src/index.ts`, all of them in `tsconfig.declarations.json`.
 * @returns external imports, such as `node:http`.
 */
export function writeDeclarations(doors: readonly string[], outdir: string): ReadonlySet<string> {
  const emitted = mkdtempSync(join(tmpdir(), 'tenon-declarations-'))
  const outside = new Set<string>()
  try {
    const tsc = join(repositoryRoot, 'node_modules/.bin/tsc')
    execFileSync(tsc, ['-p', join(import.meta.dirname, 'tsconfig.declarations.json'), '--outDir', emitted], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    const wanted = new Set(doors)
    for (const source of wanted) {
      const text = readFileSync(join(emitted, declarationOf(source)), 'utf8').replaceAll(
        specifier,
        (name) => {
          const target = targetOf(name, source)
          if (target === undefined) {
            outside.add(name)
            return name
          }
          wanted.add(target)
          const path = relative(dirname(source), target).replace(/\.ts$/, '.js')
          return path.startsWith('.') ? path : `./${path}`
        },
      )
      const file = join(outdir, declarationOf(source))
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
  } finally {
    rmSync(emitted, { recursive: true })
  }
  return outside
}

function declarationOf(source: string): string {
  return source.replace(/\.ts$/, '.d.ts')
}

/** The source that an import refers to; undefined if it is external. */
function targetOf(name: string, source: string): string | undefined {
  if (name.startsWith('.')) return relative('/', resolve('/', dirname(source), name))
  const own = /^@tenon\/([a-z-]+)$/.exec(name)?.[1]
  return own === undefined ? undefined : `${own}/src/index.ts`
}
