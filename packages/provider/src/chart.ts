/** What a cloud adds to the chart that installs Tenon; `npm run charts` writes it there. */
import type { NodeClass, ResourceType } from '@tenon/api'

/** A rule of a Role or ClusterRole, as Kubernetes writes it. */
export interface AccessRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** Where a value of the chart goes to. */
export type ChartTarget =
  /** The variable gets the value, the items of a list with commas between them; an empty one is omitted. */
  | { readonly kind: 'variable'; readonly variable: string }
  /** The value names a Secret; each variable gets the entry of its name. */
  | { readonly kind: 'secretVariables'; readonly variables: readonly string[] }
  /** The value names a Secret; the variable gets the path of a file with one of its entries. */
  | { readonly kind: 'secretFile'; readonly variable: string; readonly entry: string }
  /** The value is the text of a file, or a list that is written into it as YAML; the variable gets its path. */
  | {
      readonly kind: 'file'
      readonly variable: string
      /** Such as `prices.json`; unlike those of the cloud's other files. */
      readonly file: string
      /** Given for a JSON object: what it holds, for the error about one that is none. */
      readonly jsonObject?: string
    }

/** A value of the chart, below the provider's name. */
export interface ChartValue {
  readonly name: string
  /** A sentence for values.yaml and the table of values. */
  readonly meaning: string
  /** Its default. */
  readonly initial: string | readonly string[]
  /** JSON schema; that of a text without it. */
  readonly schema?: object
  /** Given when a release needs it: an example or an explanation, such as `such as a-1`. */
  readonly needed?: string
  readonly to: ChartTarget
}

/** A chart of another project, whose values files install Tenon as they are. */
export interface FormerChart {
  /** Its name; that of the chart of its definitions ends with `-crd`. Tenon has both under these names too. */
  readonly name: string
  /** Matches the images that the other project calls its own; they are not run, whatever `image` says. */
  readonly images: string
  /** Where its values are here, path by path, such as `settings.region` at `my-cloud.region`. */
  readonly renamed: Readonly<Record<string, string>>
  /** Its values without effect here, path by path, with what is told about each after an installation. */
  readonly ignored: Readonly<Record<string, string>>
}

/** What a cloud adds to the chart. */
export interface ProviderChart {
  readonly values: readonly ChartValue[]
  /** Rights in the whole cluster besides reading the node classes. */
  readonly rules: readonly AccessRule[]
  /** Rights in single namespaces. */
  readonly roles: readonly {
    /** The Role is called by the release and this. */
    readonly name: string
    readonly namespace: string
    readonly rules: readonly AccessRule[]
  }[]
  /** Labels, with their values, of nodes that the controller prefers to run on. */
  readonly preferredNodes?: Readonly<Record<string, readonly string[]>>
  /** Given when Tenon takes the place of another chart. */
  readonly takesOver?: FormerChart
  /** Told after an installation. */
  readonly note?: string
}

/** Rights in the whole cluster that a cloud needs: those of its chart, and to read its node classes. */
export function clusterRulesOf(
  nodeClasses: readonly ResourceType<NodeClass>[],
  chart: Pick<ProviderChart, 'rules'>,
): readonly AccessRule[] {
  const reading = nodeClasses.map(({ group, plural }) => ({
    apiGroups: [group],
    resources: [plural],
    verbs: ['get', 'list', 'watch'],
  }))
  return [...reading, ...chart.rules]
}
