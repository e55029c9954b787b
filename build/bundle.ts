/** Bundles the `tenon` command with source maps into `dist/`, or another folder, for the image. */
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bundleProgram } from './bundle-program.ts'
import { repositoryRoot } from './repository-root.ts'

const { values } = parseArgs({
  options: { outdir: { type: 'string', default: join(repositoryRoot, 'dist') } },
})
const { firstLoadBytes, scripts } = await bundleProgram(values.outdir, true)
for (const [path, bytes] of scripts) process.stdout.write(`${path} ${Math.round(bytes / 1024)} KiB\n`)
process.stdout.write(`first load of the page: ${(firstLoadBytes / 1000).toFixed(1)} kB compressed\n`)
