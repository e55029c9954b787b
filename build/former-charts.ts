/** Drop-in replacements of other projects' charts: Tenon's own charts, for one cloud, under their names. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { FormerChart } from '@tenon/provider'
import { addDefinitions, addProviders, addRules, type Files, ownChart, read } from './chart-parts.ts'
import type { ChartedProvider } from './provider-values.ts'
import { repositoryRoot } from './repository-root.ts'

/** Adds all files of both charts of a cloud that replaces another one's. */
export async function addFormerCharts(files: Files, provider: ChartedProvider): Promise<void> {
  const { module, chart } = provider
  if (chart.takesOver === undefined) return
  const { name } = chart.takesOver
  for (const suffix of ['', '-crd']) {
    const from = `${ownChart}${suffix}`
    const to = `${name}${suffix}`
    for (const path of ['.helmignore', 'values.yaml', 'values.schema.json', ...templatesOf(from)])
      files.set(`charts/${to}/${path}`, files.get(`charts/${from}/${path}`) ?? read(`charts/${from}/${path}`))
    const manifest = read(`charts/${from}/Chart.yaml`).replace(/^name: .*$/m, `name: ${to}`)
    const description = `$&, for ${module.title} and with the values of its chart ${name}`
    files.set(`charts/${to}/Chart.yaml`, manifest.replace(/^description: .*$/m, description))
  }
  addProviders(files, name, [provider])
  addRules(files, name, [provider])
  const values = `charts/${name}/values.yaml`
  files.set(values, (files.get(values) ?? '').replace(/^provider: .*$/m, `provider: ${module.name}`))
  await addDefinitions(files, name, [module])
  const beginning = (to: string, from: string): string =>
    `# ${to}\n\nThe chart [${from}](../${from}/README.md) for ${module.title} alone, under the name of a chart that it takes the place of. \`npm run charts\` writes it; change the other one.\n`
  files.set(`charts/${name}-crd/README.md`, beginning(`${name}-crd`, `${ownChart}-crd`))
  files.set(`charts/${name}/README.md`, `${beginning(name, ownChart)}\n${tableOf(chart.takesOver)}`)
}

/** Paths of handwritten templates; those of definitions have more dots in their names. */
function templatesOf(chart: string): readonly string[] {
  const all = readdirSync(join(repositoryRoot, 'charts', chart, 'templates'))
  return all.filter((file) => file.split('.').length === 2).map((file) => `templates/${file}`)
}

function tableOf({ renamed, ignored }: FormerChart): string {
  const rows = [
    ...Object.entries(renamed),
    ['image.repository', 'controller.image.repository, unless it is the image of the other chart'],
    ['image.tag', 'controller.image.tag, with image.repository'],
    ['image.digest', 'controller.image.digest, with image.repository'],
    ...Object.entries(ignored).map(([there, because]) => [there, `no effect: ${because}`]),
  ].map(([there, here]) => `| \`${there}\` | ${here} |`)
  return [
    'A values file of that chart installs this one as it is. These of its values are somewhere else here:',
    '',
    '| Value there | Here |',
    '|---|---|',
    ...rows,
    '',
  ].join('\n')
}
