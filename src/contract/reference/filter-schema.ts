import type { JsonSchema } from '../openapi-types.ts'

const scalar: JsonSchema = { type: ['string', 'number', 'boolean', 'null'] }
const scalars: JsonSchema = { type: 'array', items: scalar }
const orderedScalar: JsonSchema = { type: ['string', 'number'] }
const filter: JsonSchema = { $ref: '#/components/schemas/Filter' }
const filters: JsonSchema = { type: 'array', items: filter }

const comparisons: JsonSchema = {
  type: 'object',
  description: 'Comparisons of one payload field. All of them must be true.',
  properties: {
    $eq: { ...scalar, description: 'Equal to this value.' },
    $ne: { ...scalar, description: 'Not equal to this value, or missing.' },
    $in: { ...scalars, description: 'Equal to one of these values.' },
    $nin: { ...scalars, description: 'Equal to none of these values, or missing.' },
    $all: { ...scalars, description: 'A list that contains all of these values.' },
    $lt: { ...orderedScalar, description: 'Less than this value.' },
    $lte: { ...orderedScalar, description: 'Less than or equal to this value.' },
    $gt: { ...orderedScalar, description: 'Greater than this value.' },
    $gte: { ...orderedScalar, description: 'Greater than or equal to this value.' },
  },
  minProperties: 1,
  additionalProperties: false,
}

/**
 * JSON Schema of filters, for the API reference only: requests are validated by the filter parser. A filter can
 * combine both forms in one object.
 *
 * @see docs/http.md#filters
 */
export const filterSchema: JsonSchema = {
  anyOf: [
    {
      type: 'object',
      title: 'Combination',
      properties: {
        $and: { ...filters, description: 'All of these filters must match.' },
        $or: { ...filters, description: 'At least one of these filters must match.' },
        $not: { ...filter, description: 'This filter must not match.' },
      },
    },
    {
      type: 'object',
      title: 'Conditions',
      additionalProperties: { anyOf: [scalar, comparisons] },
    },
  ],
}
