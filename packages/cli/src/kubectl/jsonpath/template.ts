/** The parts of a JSONPath template of kubectl (https://kubernetes.io/docs/reference/kubectl/jsonpath/). */

/** The template is invalid, or does not fit the object. */
export class JsonPathError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'JsonPathError'
  }
}

export type Template = readonly Part[]

export type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'range'; readonly path: Path; readonly body: Template }

export type Path = readonly Step[]

export type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'wildcard' }
  /** All arrays and objects below, including the value itself, which is first. */
  | { readonly kind: 'recursive' }
  | { readonly kind: 'index'; readonly index: number }
  | { readonly kind: 'slice'; readonly start?: number; readonly end?: number; readonly step: number }
  | { readonly kind: 'union'; readonly members: readonly Step[] }
  | { readonly kind: 'filter'; readonly filter: Filter }

export type Comparison = '==' | '!=' | '<' | '<=' | '>' | '>='

export type Operand =
  | { readonly kind: 'value'; readonly value: string | number | boolean }
  | { readonly kind: 'path'; readonly path: Path }

export type Filter =
  | { readonly kind: 'exists'; readonly operand: Operand }
  | {
      readonly kind: 'compare'
      readonly left: Operand
      readonly comparison: Comparison
      readonly right: Operand
    }
