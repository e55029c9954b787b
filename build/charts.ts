/**
 * Writes the generated files of `charts/`: definitions as `tenon crds` prints them, values of providers from
 * their modules, tables of values from `values.yaml`. With `--check` it writes nothing and fails if a file is
 * outdated.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { chartFiles } from './chart-files.ts'
import { repositoryRoot } from './repository-root.ts'

const isCheck = process.argv.includes('--check')
const differing = [...(await chartFiles())].filter(([path, text]) => contentOf(path) !== text)

for (const [path, text] of differing) {
  const file = join(repositoryRoot, path)
  if (isCheck) {
    process.stderr.write(`${path} is not up to date; run npm run charts\n`)
    process.exitCode = 1
  } else {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    process.stdout.write(`${path}\n`)
  }
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(join(repositoryRoot, path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
