/** `npm run walk -- FLOW`: the files that a flow enters, in the order of their first entry. */
import { Coverage } from './coverage.ts'
import { flows } from './flows.ts'
import { walk } from './walk.ts'

const [name = ''] = process.argv.slice(2)
const open = Object.hasOwn(flows, name) ? flows[name] : undefined
if (open === undefined) {
  console.error(`name a flow: ${Object.keys(flows).join(', ')}`)
  process.exit(2)
}

const coverage = new Coverage()
const entered = await walk(coverage, open)
for (const [index, file] of entered.entries()) console.log(`${String(index + 1).padStart(4)}  ${file}`)

const counts = Object.groupBy(entered, (file) => file.split('/')[1] ?? '')
for (const [packageName, files = []] of Object.entries(counts)) {
  console.log(`\n${packageName}: ${files.length} files entered`)
  const folders = Object.entries(Object.groupBy(files, folderOf))
  for (const [folder, inside = []] of folders) console.log(`  ${folder}: ${inside.length}`)
}
const { library = [], own = [] } = Object.groupBy(coverage.loaded, (file) =>
  file.startsWith('packages/') ? 'own' : 'library',
)
console.log(`\n${own.length} modules of packages loaded, ${library.length} of libraries`)
process.exit(0)

/** `src/FOLDER` of a file, or `src`. */
function folderOf(file: string): string {
  const [, , , folder = '', ...rest] = file.split('/')
  return rest.length > 0 ? folder : '(root)'
}
