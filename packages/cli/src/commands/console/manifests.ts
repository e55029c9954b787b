/** Manifests that are edited on the page: their problems, and the fields they may have. */
import { type KubeObject, nodePoolCrd, type UnstructuredObject } from '@tenon/api'
import type { FieldHint, ReadManifests } from '@tenon/console'
import { defaultSettings } from '@tenon/operator/objects'
import type { Io } from '../../io.ts'
import { loadProviders } from '../../load-provider.ts'
import { allCrds, yamlDocument } from '../../crds.ts'
import { readText } from '../validate/documents.ts'
import { SchemaChecker } from '../validate/schema-check.ts'
import { validate } from '../validate/validate.ts'

interface Schema {
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** Validates manifests as `tenon validate` does, and returns them as the API server would store them. */
export async function readTypedManifests(io: Pick<Io, 'cwd'>, text: string): Promise<ReadManifests> {
  const crds = await allCrds((await loadProviders('', io.cwd)).all)
  const { problems } = validate([{ file: '', text }], {
    crds,
    gates: defaultSettings.featureGates,
    providers: [],
    controllers: [],
  })
  const schemas = new SchemaChecker(crds)
  const objects = readText('', text).objects.flatMap(({ object }): readonly KubeObject[] => {
    const { name } = object.metadata
    const stored = schemas.check(object)?.stored ?? object
    return name === undefined ? [] : [{ ...stored, metadata: { ...stored.metadata, name } }]
  })
  return {
    objects,
    problems: [
      ...problems
        // Without providers, node classes of any kind are accepted.
        .filter(({ message }) => !message.startsWith('no provider of Tenon serves'))
        .map(({ column, field, fix, line, message, severity }) => ({
          line,
          column,
          severity,
          field,
          message,
          ...(fix !== undefined && { fix }),
        })),
      ...(objects.length === 0 && problems.length === 0
        ? [{ line: 1, column: 1, severity: 'error' as const, field: '', message: 'there is no object' }]
        : []),
    ],
  }
}

/** Fields of a NodePool, from its CustomResourceDefinition. */
export function nodePoolFields(): readonly FieldHint[] {
  const { spec } = nodePoolCrd as {
    readonly spec: { readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[] }
  }
  return spec.versions.flatMap(({ schema }) => hintsOf(schema.openAPIV3Schema, '')).filter(isWritten)
}

function isWritten({ path }: FieldHint): boolean {
  return path !== 'status' && !path.startsWith('status.')
}

function hintsOf({ items, properties = {} }: Schema, path: string): readonly FieldHint[] {
  const own = Object.entries(properties).flatMap(([name, schema]) => {
    const field = path === '' ? name : `${path}.${name}`
    const values = (schema.enum ?? schema.items?.enum)?.map(String)
    const description = schema.description?.split('\n')[0]?.slice(0, 160)
    return [
      {
        path: field,
        ...(values !== undefined && { values }),
        ...(description !== undefined && { description }),
      },
      ...hintsOf(schema, field),
    ]
  })
  return items === undefined ? own : [...own, ...hintsOf(items, `${path}[]`)]
}

/** The fields of an object that users set, without those of the API server and of controllers. */
export function writtenObject({ apiVersion, kind, metadata, ...rest }: KubeObject): {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: Pick<KubeObject['metadata'], 'annotations' | 'labels' | 'name' | 'namespace'>
  readonly spec: unknown
} {
  const { annotations = {}, labels, name, namespace } = metadata
  const own = Object.entries(annotations).filter(
    ([key]) => !key.startsWith('karpenter.sh/nodepool-hash') && !key.startsWith('kubectl.kubernetes.io/'),
  )
  const { spec } = rest as { readonly spec?: unknown }
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(labels !== undefined && { labels }),
      ...(own.length > 0 && { annotations: Object.fromEntries(own) }),
    },
    spec,
  }
}

/** An object as YAML, as a user would write it. */
export function manifestText(object: KubeObject): string {
  return yamlDocument(
    writtenObject(object) satisfies Partial<UnstructuredObject> & { readonly spec: unknown },
  )
}
