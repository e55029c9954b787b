/** Shorthand for the OpenAPI schemas of CustomResourceDefinitions. */

/** A structural schema, as in `openAPIV3Schema`. */
export interface CrdSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean'
  readonly description?: string
  readonly properties?: Readonly<Record<string, CrdSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: CrdSchema
  readonly items?: CrdSchema
  readonly enum?: readonly string[]
  readonly format?: string
  readonly pattern?: string
  readonly default?: unknown
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxProperties?: number
  readonly nullable?: boolean
  readonly anyOf?: readonly CrdSchema[]
  readonly 'x-kubernetes-int-or-string'?: boolean
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  readonly 'x-kubernetes-list-map-keys'?: readonly string[]
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular'
  readonly 'x-kubernetes-validations'?: readonly CelRule[]
}

/** A CEL rule with the message that users read when it fails. */
export interface CelRule {
  readonly rule: string
  readonly message: string
}

interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  readonly priority?: number
}

export interface CrdOptions {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly columns: readonly PrinterColumn[]
  readonly description: string
  readonly spec: CrdSchema
  /** Whether `spec` may be missing. Default: it is required. */
  readonly isSpecOptional?: boolean
  readonly status: CrdSchema
  /** Default: objects are cluster-scoped. */
  readonly isNamespaced?: boolean
  /** Other versions with the same schema. They are served with a warning and never stored. */
  readonly deprecatedVersions?: readonly string[]
  readonly scale?: { readonly specReplicasPath: string; readonly statusReplicasPath: string }
}

/** Builds the CustomResourceDefinition of a kind that has a status subresource. */
export function crd(options: CrdOptions): Readonly<Record<string, unknown>> {
  const { group, version, kind, plural } = options
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: options.isNamespaced === true ? 'Namespaced' : 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        ...(options.shortNames && { shortNames: options.shortNames }),
        ...(options.categories && { categories: options.categories }),
      },
      versions: [
        versionOf(options, version),
        ...(options.deprecatedVersions ?? []).map((name) => versionOf(options, name)),
      ],
    },
  }
}

function versionOf(options: CrdOptions, name: string): object {
  return {
    name,
    served: true,
    storage: name === options.version,
    ...(name !== options.version && { deprecated: true }),
    // The API server drops an empty list, and each apply would bring it back.
    ...(options.columns.length > 0 && { additionalPrinterColumns: options.columns }),
    subresources: { status: {}, ...(options.scale && { scale: options.scale }) },
    schema: {
      openAPIV3Schema: {
        type: 'object',
        description: options.description,
        ...(options.isSpecOptional !== true && { required: ['spec'] }),
        properties: {
          apiVersion: text('Version of the API that this object is written for.'),
          kind: text('Kind of this object.'),
          metadata: { type: 'object' },
          spec: options.spec,
          status: options.status,
        },
      },
    },
  }
}

export function text(description: string, rest: Omit<CrdSchema, 'type' | 'description'> = {}): CrdSchema {
  return { type: 'string', description, ...rest }
}

export function integer(description: string, rest: Omit<CrdSchema, 'type' | 'description'> = {}): CrdSchema {
  return { type: 'integer', description, ...rest }
}

export function object(
  description: string,
  properties: Readonly<Record<string, CrdSchema>>,
  rest: Omit<CrdSchema, 'type' | 'description' | 'properties'> = {},
): CrdSchema {
  return { type: 'object', description, properties, ...rest }
}

/** A list that server-side apply replaces as a whole. */
export function list(
  description: string,
  items: CrdSchema,
  rest: Omit<CrdSchema, 'type' | 'description' | 'items'> = {},
): CrdSchema {
  return { type: 'array', description, items, 'x-kubernetes-list-type': 'atomic', ...rest }
}

const quantityPattern =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$'

/** A map from resource names to quantities. */
export function quantities(description: string): CrdSchema {
  return {
    type: 'object',
    description,
    additionalProperties: {
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      pattern: quantityPattern,
      'x-kubernetes-int-or-string': true,
    },
  }
}

/** Schema of status conditions. Relaxed ones may lack reason and message, as objects stored by older versions do. */
export function conditions(isRelaxed = false): CrdSchema {
  const reason = '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?'
  return {
    type: 'array',
    description: 'What is known of the state of this object, one entry for each aspect.',
    items: object(
      'One aspect of the state.',
      {
        type: text('Name of the aspect.', {
          maxLength: 316,
          pattern:
            '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
        }),
        status: text('Whether it holds.', { enum: ['True', 'False', 'Unknown'] }),
        reason: text('Why, as one word for programs.', {
          maxLength: 1024,
          pattern: isRelaxed ? `^(${reason}|)$` : `^${reason}$`,
          ...(isRelaxed ? {} : { minLength: 1 }),
        }),
        message: text('Why, as a sentence for people.', { maxLength: 32768 }),
        lastTransitionTime: text('When the status last changed.', { format: 'date-time' }),
        observedGeneration: integer('Generation of the object that was looked at.', {
          format: 'int64',
          minimum: 0,
        }),
      },
      {
        required: isRelaxed
          ? ['lastTransitionTime', 'status', 'type']
          : ['lastTransitionTime', 'message', 'reason', 'status', 'type'],
      },
    ),
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  }
}
