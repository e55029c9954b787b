/** Extracts the queries of a Grafana dashboard. */

interface Panel {
  readonly title: string
  readonly type: string
  readonly targets?: readonly { readonly expr: string }[]
}

/** The part of a dashboard's JSON that tests read. */
export interface Dashboard {
  readonly panels: readonly Panel[]
  readonly templating: { readonly list: readonly { readonly type: string; readonly definition?: string }[] }
}

/** Variables of the dashboard and of Grafana, with their values if everything is selected. */
const values: readonly (readonly [string, string])[] = [
  ['$__rate_interval', '30s'],
  ['$nodepool', '.+'],
  ['$job', '.+'],
]

/** Every query, as Grafana would send it with everything selected. */
export function dashboardQueries(
  dashboard: Dashboard,
): readonly { readonly title: string; readonly expression: string }[] {
  return dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({
      title,
      expression: values.reduce((text, [name, value]) => text.replaceAll(name, value), expr),
    })),
  )
}

/** Names of metrics in queries; for a histogram or summary, the name of the family. */
export function metricNames(text: string): readonly string[] {
  const quoted = /'[^']*'|"[^"]*"/g
  const names = text
    .split('\n')
    .filter((line) => !/^\s*(#|summary:|description:)/.test(line))
    .join('\n')
    .replaceAll(quoted, '')
    .matchAll(
      /\b(?:tenon:[a-z0-9_:]+|(?:karpenter|operator|tenon|controller_runtime|workqueue|leader_election|client_go|process|go)_[a-z0-9_]+)\b/g,
    )
  return [...new Set(Array.from(names, ([name]) => family(name)))].filter((name) => !labels.has(name))
}

/** Labels that look like metrics. */
const labels: ReadonlySet<string> = new Set(['karpenter_sh_nodepool', 'karpenter_sh_initialized'])

function family(name: string): string {
  if (/_seconds_(bucket|count|sum)$/.test(name)) return name.replace(/_(bucket|count|sum)$/, '')
  return name
}
