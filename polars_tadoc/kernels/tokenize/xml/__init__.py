"""Words of XML text: tags and the words between them."""
