/**
 * Writes the generated files of `charts/`: definitions from what `tenon crds` prints, what providers add from
 * their modules, tables of values from `values.yaml`. With `--check` it writes nothing and fails when one is not as it should be.
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
