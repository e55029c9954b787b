/** What a cloud adds to the chart of Tenon; `npm run charts` writes it there. */
import type { NodeClass, ResourceType } from '@tenon/api'

/** A rule of a Role or ClusterRole. */
export interface AccessRule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}

/** How a chart value reaches the controller. */
export type ChartTarget =
  /** The variable gets the value; lists are joined by commas, empty values are omitted. */
  | { readonly kind: 'variable'; readonly variable: string }
  /** The value names a Secret; each variable gets the entry of its own name. */
  | { readonly kind: 'secretVariables'; readonly variables: readonly string[] }
  /** The value names a Secret; the variable gets the path of a file with one of its entries. */
  | { readonly kind: 'secretFile'; readonly variable: string; readonly entry: string }
  /**
   * The value is the content of a file, or a list that is written to it as YAML; the variable gets its path.
   */
  | {
      readonly kind: 'file'
      readonly variable: string
      /** Such as `prices.json`; unique among the cloud's files. */
      readonly file: string
      /** Set for a JSON object: what it contains, for the error about invalid JSON. */
      readonly jsonObject?: string
    }

/** A chart value, under the provider's name. */
export interface ChartValue {
  readonly name: string
  /** One sentence for values.yaml and the table of values. */
  readonly meaning: string
  /** The default. */
  readonly initial: string | readonly string[]
  /** JSON schema; default: a string. */
  readonly schema?: object
  /** Set if a release needs the value: an example or an explanation, such as `such as a-1`. */
  readonly needed?: string
  readonly to: ChartTarget
}

/** A chart of another project whose values files also work for Tenon. */
export interface FormerChart {
  /** Its name; the chart of its CRDs has the suffix `-crd`. Tenon is also published under these names. */
  readonly name: string
  /** Matches the other project's own images, which are not run whatever `image` says. */
  readonly images: string
  /** Renamed values by path, such as `settings.region` at `my-cloud.region`. */
  readonly renamed: Readonly<Record<string, string>>
  /** Values without effect, by path, with a note that is shown after an installation. */
  readonly ignored: Readonly<Record<string, string>>
}

/** What a cloud adds to the chart. */
export interface ProviderChart {
  readonly values: readonly ChartValue[]
  /** Cluster-wide rules, in addition to reading node classes. */
  readonly rules: readonly AccessRule[]
  /** Rules in single namespaces. */
  readonly roles: readonly {
    /** Suffix of the Role's name, after the name of the release. */
    readonly name: string
    readonly namespace: string
    readonly rules: readonly AccessRule[]
  }[]
  /** Labels, with their values, of nodes that the controller prefers to run on. */
  readonly preferredNodes?: Readonly<Record<string, readonly string[]>>
  /** Set if Tenon can replace another chart. */
  readonly takesOver?: FormerChart
  /** Shown after an installation. */
  readonly note?: string
}

/** All cluster-wide rules of a cloud: those of its chart, and reading its node classes. */
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
